package keepalived

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/atomicfile"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// bootstrapLifetime is for how long the bootstrap may hold the API VIP: until its own API
// server is gone, and the provisioning service if it ever was there (hard case
// 8). Its end lasts over restarts and reboots: a bootstrap host may be kept for long
// after the installation. It is taken back only by an API server that is ready again,
// as after etcd had no leader while its members changed: a host that the installation
// is done with has none.
type bootstrapLifetime struct {
	// marker is the file that says that it is over.
	marker       string
	seen, ironic bool      // the API server was ready, the provisioning service answered
	since        time.Time // it is otherwise since then; zero: it is not
	over         bool
	resumed      bool // it was over before
}

func newBootstrapLifetime(marker string) *bootstrapLifetime {
	_, err := os.Stat(marker)
	return &bootstrapLifetime{marker: marker, over: !errors.Is(err, fs.ErrNotExist)}
}

// look takes in what is known now and says whether that has ended the lifetime just now,
// or taken its end back.
func (t *bootstrapLifetime) look(now time.Time, get func(fact string) (f state.Fact, known bool)) (changed bool) {
	api, _ := get(health.FactAPI)
	ironic, _ := get(health.FactIronic)
	t.seen = t.seen || api.OK
	t.ironic = t.ironic || ironic.OK
	over := !api.OK
	if !t.over {
		over = t.seen && !api.OK && !(t.ironic && ironic.OK)
	}
	switch {
	case over == t.over:
		t.since = time.Time{}
		return false
	case t.since.IsZero():
		t.since = now
		return false
	case now.Sub(t.since) < vrrp.BootstrapGoneAfter:
		return false
	}
	t.over, t.resumed, t.since = over, !over, time.Time{}
	return true
}

// remember makes the end last, or forgets it.
func (t *bootstrapLifetime) remember() error {
	if !t.over {
		_, err := atomicfile.Remove(t.marker)
		return err
	}
	_, err := atomicfile.Write(t.marker, []byte("The API server of this bootstrap host has gone: keepalived starts again only once it is ready.\n"), 0o644)
	return err
}
