package keepalived

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/vipgen/vipgen/agent/atomicfile"
	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// tenure is for how long the bootstrap holds the API VIP: until its own API
// server is gone, and the provisioning service if it ever was there (hard case
// 8). Its end is for good, also over restarts and reboots: a bootstrap host may
// be kept for long after the installation.
type tenure struct {
	// marker is the file that says that it is over.
	marker       string
	seen, ironic bool      // the API server was ready, the provisioning service answered
	since        time.Time // both are away since then; zero: they are not
	over         bool
}

func newTenure(marker string) *tenure {
	_, err := os.Stat(marker)
	return &tenure{marker: marker, over: !errors.Is(err, fs.ErrNotExist)}
}

// look takes in what is known now and says whether the end has come just now.
func (t *tenure) look(now time.Time, get func(fact string) (f health.Fact, known bool)) (ended bool) {
	if t.over {
		return false
	}
	api, _ := get(health.FactAPI)
	ironic, _ := get(health.FactIronic)
	t.seen = t.seen || api.OK
	t.ironic = t.ironic || ironic.OK
	switch {
	case !t.seen || api.OK || t.ironic && ironic.OK:
		t.since = time.Time{}
	case t.since.IsZero():
		t.since = now
	default:
		t.over = now.Sub(t.since) >= vrrp.BootstrapGoneAfter
	}
	return t.over
}

// remember makes the end last.
func (t *tenure) remember() error {
	_, err := atomicfile.Write(t.marker, []byte("The API server of this bootstrap host has gone: keepalived does not start again.\n"), 0o644)
	return err
}
