package gate

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/fileio"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// Lifetime bounds how long the bootstrap may hold the API VIP: until its own API
// server is gone, and the provisioning service if it ever ran there (hard case 8). The
// end survives restarts and reboots, because a bootstrap host may be kept long after the
// installation. Only an API server that is ready again revokes it, for example after etcd
// had no leader during a change of members; a host that the installation no longer needs
// has none.
type Lifetime struct {
	// marker is a file that exists once the lifetime is over.
	marker       string
	log          *slog.Logger
	seen, ironic bool      // the API server was ready once, the provisioning service answered once
	since        time.Time // when the facts began to contradict over; zero: they do not

	mu      sync.Mutex // guards the fields below: written by the watch, read by the loop too
	over    bool
	resumed bool // the lifetime was over and continues
}

func NewLifetime(marker string, log *slog.Logger) *Lifetime {
	_, err := os.Stat(marker)
	return &Lifetime{marker: marker, log: log, over: !errors.Is(err, fs.ErrNotExist)}
}

// State reports whether the lifetime is over, and whether it was resumed. A nil receiver,
// on any other node, is neither.
func (t *Lifetime) State() (over, resumed bool) {
	if t == nil {
		return false, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.over, t.resumed
}

// Poll evaluates the facts, logs and stores a change, and reports whether there was one.
func (t *Lifetime) Poll(now time.Time, get func(fact string) (f state.Fact, known bool)) (changed bool) {
	if t == nil || !t.evaluate(now, get) {
		return false
	}
	event := "the API server of this bootstrap host is ready again: VIPs may be here again"
	if t.over {
		event = "the API server of this bootstrap host has gone: VIPs leave until it is ready again"
	}
	t.log.Info(event)
	if err := t.store(); err != nil {
		t.log.Error("cannot store whether the API server of this bootstrap host has gone", "error", err)
	}
	return true
}

// evaluate reports whether the facts end or resume the lifetime now.
func (t *Lifetime) evaluate(now time.Time, get func(fact string) (f state.Fact, known bool)) (changed bool) {
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

// store writes the marker, or removes it.
func (t *Lifetime) store() error {
	if !t.over {
		_, err := fileio.Remove(t.marker)
		return err
	}
	_, err := fileio.Write(t.marker, []byte("The API server of this bootstrap host has gone: VIPs come back only once it is ready.\n"), 0o644)
	return err
}
