package client

import (
	"context"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testbed/kubeapi"
	"github.com/vipgen/vipgen/internal/testkit"
)

// TestWaits: only due events count, and missing ones are late as well.
func TestWaits(t *testing.T) {
	w := &waits{}
	now := time.Now()
	w.expect(1, now.Add(-time.Hour))
	w.complete(1)
	w.begin()
	w.expect(2, now.Add(-time.Hour))
	w.expect(2, now.Add(-time.Minute)) // before it was created
	w.expect(2, now.Add(-2*time.Second))
	w.expect(3, now.Add(time.Hour))
	if got, _ := w.result(); got < 2*time.Second || got > time.Minute {
		t.Errorf("waiting for the second for %v, want 2s and a little", got)
	}
	w.complete(7) // more than exist
	w.expect(3, now.Add(-time.Hour))
	if got, lost := w.result(); got < 2*time.Second || got > time.Minute || lost != 0 {
		t.Errorf("%v, lost %d, want 2s and a little", got, lost)
	}
	if !w.since(now) || w.since(now.Add(2*time.Hour)) {
		t.Error("the last item was due in an hour")
	}
}

// machine connects from this machine.
type machine struct{ net.Dialer }

// TestClients: all kinds of clients work, wait while there is no API server, and work again.
func TestClients(t *testing.T) {
	api, err := kubeapi.NewStandIn(kubeapi.StandInConfig{Domain: "demo.example.com"})
	testkit.Must(t, err)
	t.Cleanup(func() { api.Close() })
	pid := os.Getpid()
	addr := netip.AddrFrom4([4]byte{127, byte(1 + pid>>16), byte(pid >> 8), byte(pid)})
	server, err := api.Server(nil, addr)
	testkit.Must(t, err)
	testkit.Must(t, server.Launch())
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	c, err := Start(ctx, Config{
		API: api, Domain: "demo.example.com", VIP: netip.AddrPortFrom(addr, 6443), Each: 2,
		Places: []Place{{Name: "control plane"}, {Name: "worker", Machines: []Machine{&machine{}}}},
	})
	testkit.Must(t, err)
	c.Begin()
	testkit.Must(t, server.Kill())
	const down = 300 * time.Millisecond
	testkit.Await(t, "every client except watches, which have no event, to wait", func() bool {
		for _, g := range c.groups {
			for _, w := range g.all {
				if longest, _ := w.result(); longest < down && g.kind != Watch {
					return false
				}
			}
		}
		return true
	})
	testkit.Must(t, server.Launch())
	testkit.Check(t, c.Await(ctx))
	results := c.End()
	if len(results) != 3 {
		t.Fatalf("%d results: %+v", len(results), results)
	}
	for i, kind := range []string{Watch, Election, Heartbeat} {
		r := results[i]
		if r.Kind != kind || r.Place != "worker" || r.Clients != 2 || r.Longest < down && kind != Watch || r.Lost > 0 || r.Stuck > 0 {
			t.Errorf("%s: %+v", kind, r)
		}
	}
}

// TestStuck: clients that never work again are counted.
func TestStuck(t *testing.T) {
	c := &Clients{stop: func() {}, cancel: func() {}, awaiting: time.Now()}
	w := &waits{}
	w.expect(1, time.Now().Add(-time.Second))
	c.groups = []*group{{kind: Heartbeat, place: "outside", all: []*waits{w}}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Await(ctx); err == nil {
		t.Error("no error")
	}
	if r := c.End()[0]; r.Stuck != 1 || r.Longest < time.Second {
		t.Errorf("%+v", r)
	}
}
