package chaos

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/lab"
	"github.com/vipgen/vipgen/lab/testbed/probe"
)

// routed watches a cluster whose VIPs routers know by BGP: where the routers of the racks send
// packets for VIPs, and the requests of a client behind the routers.
type routed struct {
	*lab.Routers
	tables []*table
	probes map[netip.Addr]*probe.Probe
}

// table is the routes of a rack's router to VIPs.
type table struct {
	router *lab.Router
	nodes  map[netip.Addr]string // of the rack, by address

	mu   sync.Mutex
	open map[span]time.Duration // start of routes, by VIP and node
	done []span
}

const (
	// tableEvery is the poll interval of routers' routes.
	tableEvery = 20 * time.Millisecond
	// askEvery is the time between two requests to a VIP, askTimeout the client's timeout, after which
	// judgeLate is over.
	askEvery   = 100 * time.Millisecond
	askTimeout = 400 * time.Millisecond
)

// watchRouted starts the routers, and watches until ctx ends; then the caller must end it.
func (r *run) watchRouted(ctx context.Context, since time.Time, background *sync.WaitGroup) error {
	routers, err := r.cluster.AddRouters(ctx)
	if err != nil {
		return err
	}
	w := &routed{Routers: routers, probes: map[netip.Addr]*probe.Probe{}}
	r.routed, r.record.routed = w, w
	for i, router := range routers.Racks {
		t := &table{router: router, nodes: map[netip.Addr]string{}, open: map[span]time.Duration{}}
		for at, n := range r.cluster.Nodes() {
			if lab.RackOf(at) == i {
				t.nodes[n.Address()] = n.Name
			}
		}
		w.tables = append(w.tables, t)
		background.Go(func() {
			for sleep(ctx, tableEvery) {
				if err := t.poll(r.record.now); err != nil {
					r.fail(fmt.Errorf("reading the routes of %s: %w", router.Name, err))
				}
			}
		})
	}
	return w.ask(r.cluster, since)
}

// ask starts requests of the client to all VIPs, each over a connection of its own.
func (w *routed) ask(c *lab.Cluster, since time.Time) (err error) {
	for _, g := range c.Spec().Groups {
		for _, vip := range g.VIPs {
			to := probe.Target{URL: "https://" + netip.AddrPortFrom(vip, 6443).String() + "/readyz", Timeout: askTimeout, Dial: c.Client.DialContext}
			if g.Role == v1alpha1.GroupIngress {
				to.URL, to.Host = "http://"+netip.AddrPortFrom(vip, v1alpha1.HTTPPort).String()+"/", "console.apps."+c.Spec().Domain
			}
			if w.probes[vip], err = probe.Start(probe.Config{Target: to, Every: askEvery, Since: since}); err != nil {
				return err
			}
		}
	}
	return nil
}

// end ends the requests; it may be called without any.
func (w *routed) end() {
	if w == nil {
		return
	}
	for _, p := range w.probes {
		p.End()
	}
}

// poll records changes of the routes.
func (t *table) poll(now func() time.Duration) error {
	routes, err := t.router.Routes()
	if err != nil {
		return err
	}
	at, have := now(), map[span]bool{}
	for to, hops := range routes {
		for _, via := range hops {
			if name := t.nodes[via]; name != "" {
				have[span{VIP: to, Node: name}] = true
			}
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for k := range have {
		if _, ok := t.open[k]; !ok {
			t.open[k] = at
		}
	}
	for k, from := range t.open {
		if !have[k] {
			delete(t.open, k)
			k.From, k.To = from, at
			t.done = append(t.done, k)
		}
	}
	return nil
}

// spans returns the routes to VIPs after a time, and how many there have been.
func (w *routed) spans(from time.Duration) (out []span, total int) {
	for _, t := range w.tables {
		t.mu.Lock()
		for _, s := range t.done {
			if s.To > from {
				out = append(out, s)
			}
		}
		for k, since := range t.open {
			k.From, k.To = since, forever
			out = append(out, k)
		}
		total += len(t.done) + len(t.open)
		t.mu.Unlock()
	}
	return out, total
}

// requests returns the requests after a time that have ended.
func (w *routed) requests(from time.Duration) (out []request) {
	for vip, p := range w.probes {
		for _, q := range p.Sent(from) {
			if q.Ended > 0 {
				out = append(out, request{VIP: vip, Sent: q.Sent, Ended: q.Ended, Err: q.Err})
			}
		}
	}
	return out
}
