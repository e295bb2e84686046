package keepalived

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/atomicfile"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// bootstrapLifetime bounds how long the bootstrap may hold the API VIP: until its own API
// server is gone, and the provisioning service if it ever was there (hard case
// 8). Its end lasts over restarts and reboots: a bootstrap host may be kept for long
// after the installation. It is taken back only by an API server that is ready again,
// as after etcd had no leader while its members changed: a host that the installation
// is done with has none.
type bootstrapLifetime struct {
	// marker is a file that exists once it is over.
	marker       string
	log          *slog.Logger
	seen, ironic bool      // the API server was ready, the provisioning service answered
	since        time.Time // it is otherwise since then; zero: it is not

	mu      sync.Mutex // of those that follow: written by the watch, read by the loop as well
	over    bool
	resumed bool // it was over before
}

func newBootstrapLifetime(marker string, log *slog.Logger) *bootstrapLifetime {
	_, err := os.Stat(marker)
	return &bootstrapLifetime{marker: marker, log: log, over: !errors.Is(err, fs.ErrNotExist)}
}

// state reports whether the lifetime is over, and whether it was resumed; neither for a node
// that is no bootstrap, which has none.
func (t *bootstrapLifetime) state() (over, resumed bool) {
	if t == nil {
		return false, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.over, t.resumed
}

// poll evaluates the facts, and logs and stores a change. It reports whether there was one.
func (t *bootstrapLifetime) poll(now time.Time, get func(fact string) (f state.Fact, known bool)) (changed bool) {
	if t == nil || !t.evaluate(now, get) {
		return false
	}
	event := "the API server of this bootstrap host is ready again: keepalived may run again"
	if t.over {
		event = "the API server of this bootstrap host has gone: keepalived stops until it is ready again"
	}
	t.log.Info(event)
	if err := t.store(); err != nil {
		t.log.Error("whether the API server of this bootstrap host has gone will not be remembered", "error", err)
	}
	return true
}

// evaluate reports whether the facts end the lifetime just now, or take its end back.
func (t *bootstrapLifetime) evaluate(now time.Time, get func(fact string) (f state.Fact, known bool)) (changed bool) {
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
	t.mu.Lock()
	t.over, t.resumed = over, !over
	t.mu.Unlock()
	t.since = time.Time{}
	return true
}

// store makes the end last, or forgets it.
func (t *bootstrapLifetime) store() error {
	if !t.over {
		_, err := atomicfile.Remove(t.marker)
		return err
	}
	_, err := atomicfile.Write(t.marker, []byte("The API server of this bootstrap host has gone: keepalived starts again only once it is ready.\n"), 0o644)
	return err
}
