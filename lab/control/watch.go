package control

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/lab"
)

// every is the poll interval of the nodes' addresses, which are also read after each change.
// Several nodes must hold a VIP for this long to count as a split brain.
const every = 50 * time.Millisecond

// VIP is the state of a virtual IP.
type VIP struct {
	Address netip.Addr `json:"address"`
	Group   string     `json:"group"`
	// Holders are the nodes that have it on an interface: one, unless something is wrong. If the VIP
	// is Routed, they are the nodes that the routers of the racks send its packets to. Since is the
	// time of their last change.
	Holders []string  `json:"holders"`
	Routed  bool      `json:"routed,omitempty"`
	Since   time.Time `json:"since"`
	// Failover is the last failover.
	Failover *Failover `json:"lastFailover,omitempty"`
}

// Failover is the move of a VIP from one holder to another, or back to the same.
type Failover struct {
	From string    `json:"from"`
	To   string    `json:"to"`
	At   time.Time `json:"at"`
	// WithoutHolderMS is the time in milliseconds in which no node had the VIP on a link.
	WithoutHolderMS int64 `json:"withoutHolderMS"`
}

// watch follows the holders of a cluster's VIPs.
type watch struct {
	nodes   []*lab.Node
	routers *lab.Routers // nil unless they know the VIPs by BGP
	log     func(format string, args ...any)
	changed chan struct{} // an address of a node has changed
	stop    chan struct{}
	done    chan struct{}

	mu     sync.Mutex
	states []*watchedVIP
	off    map[string]bool // nodes without power, which hold nothing, whatever is on their links
}

// watchedVIP is the state of a VIP in a watch.
type watchedVIP struct {
	VIP
	sole    string    // last sole holder
	lost    time.Time // since when no node holds it; zero while one does
	several []string  // nodes that hold it together
	since   time.Time // start of several
}

func newWatch(c *lab.Cluster, routers *lab.Routers, log func(string, ...any)) *watch {
	w := &watch{nodes: c.Nodes(), routers: routers, log: log, changed: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}), off: map[string]bool{}}
	for _, g := range c.Spec().Groups {
		for _, vip := range g.VIPs {
			w.states = append(w.states, &watchedVIP{VIP: VIP{Address: vip, Group: g.Name, Holders: []string{}, Routed: routers != nil, Since: time.Now()}})
		}
	}
	for _, n := range w.nodes {
		if err := w.follow(n); err != nil {
			log("following the addresses of %s: %v: times of failovers are known to within %v", n.Name, err, every)
		}
	}
	go w.run()
	return w
}

// follow wakes run with each change of a node's addresses.
func (w *watch) follow(n *lab.Node) error {
	changes := make(chan netlink.AddrUpdate)
	err := n.Do(func() error {
		return netlink.AddrSubscribeWithOptions(changes, w.stop, netlink.AddrSubscribeOptions{ErrorCallback: func(error) {}})
	})
	if err == nil {
		go func() {
			for range changes {
				select {
				case w.changed <- struct{}{}:
				default: // a wake-up is pending
				}
			}
		}()
	}
	return err
}

func (w *watch) close() {
	close(w.stop)
	<-w.done
}

// run reads the addresses of all nodes until close.
func (w *watch) run() {
	defer close(w.done)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		w.observe(w.present(), time.Now())
		select {
		case <-w.stop:
			return
		case <-w.changed:
		case <-tick.C:
		}
	}
}

// present returns the addresses on the nodes, or with routers the destinations that these send to them.
// An error is that of a namespace that is being removed.
func (w *watch) present() map[string][]netip.Addr {
	out := map[string][]netip.Addr{}
	if w.routers == nil {
		for _, n := range w.nodes {
			out[n.Name], _ = n.Present()
		}
		return out
	}
	for _, r := range w.routers.Racks {
		routes, _ := r.Routes()
		for _, n := range w.nodes {
			for to, hops := range routes {
				if slices.Contains(hops, n.Address()) {
					out[n.Name] = append(out[n.Name], to)
				}
			}
		}
	}
	return out
}

// observe updates all VIPs with the addresses of the nodes.
func (w *watch) observe(present map[string][]netip.Addr, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.states {
		holders := []string{}
		for _, n := range w.nodes {
			if !w.off[n.Name] && slices.Contains(present[n.Name], s.Address) {
				holders = append(holders, n.Name)
			}
		}
		s.observe(holders, now, w.log)
	}
}

// power records that a node loses its power, or has it again. Routers notice it themselves.
func (w *watch) power(node string, on bool) {
	if w.routers != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.off[node] = !on
	for _, s := range w.states {
		if !on && slices.Contains(s.Holders, node) {
			s.set(slices.DeleteFunc(slices.Clone(s.Holders), func(n string) bool { return n == node }), time.Now(), w.log)
		}
	}
}

// observe updates the holders. Several count once they have held the VIP for every: during a
// failover, the old and the new holder both have it for a moment.
func (s *watchedVIP) observe(holders []string, now time.Time, log func(string, ...any)) {
	if s.Routed || len(holders) < 2 {
		s.several = nil
	} else if !slices.Equal(holders, s.several) {
		s.several, s.since = holders, now
	}
	if passing := s.several != nil && now.Sub(s.since) < every; !passing && !slices.Equal(holders, s.Holders) {
		s.set(holders, now, log)
	}
}

// set records a change of holders.
func (s *watchedVIP) set(holders []string, now time.Time, log func(string, ...any)) {
	before := strings.Join(s.Holders, " and ")
	s.Holders, s.Since = holders, now
	switch {
	case s.Routed:
		log("%v: routers send to %s", s.Address, s.Holder())
	case len(holders) == 0:
		s.lost = now
		log("%v: no node has it, %s had it before", s.Address, before)
	case len(holders) == 1:
		s.settle(holders[0], now, log)
	default:
		s.lost = time.Time{}
		log("%v: SPLIT BRAIN, %s", s.Address, strings.Join(holders, " and "))
	}
}

// settle records the only holder.
func (s *watchedVIP) settle(holder string, now time.Time, log func(string, ...any)) {
	var gap time.Duration
	if !s.lost.IsZero() {
		gap = now.Sub(s.lost)
	}
	switch {
	case s.sole == "":
		log("%v: %s has it", s.Address, holder)
	case s.sole == holder && gap == 0:
		log("%v: %s has it alone again", s.Address, holder)
	default:
		s.Failover = &Failover{From: s.sole, To: holder, At: now, WithoutHolderMS: gap.Milliseconds()}
		log("%v: %s has it, %s", s.Address, holder, s.Failover)
	}
	s.sole, s.lost = holder, time.Time{}
}

// String describes the failover: "from master-0, 160ms without a holder".
func (f *Failover) String() string {
	without := fmt.Sprintf("%v %s", time.Duration(f.WithoutHolderMS)*time.Millisecond, vrrp.WithoutHolder)
	switch {
	case f.WithoutHolderMS == 0:
		return "taken over from " + f.From
	case f.From == f.To:
		return "back, " + without
	}
	return "from " + f.From + ", " + without
}

// vips returns the state of all VIPs, in the order of the cluster's groups.
func (w *watch) vips() (out []VIP) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.states {
		out = append(out, s.VIP)
	}
	return out
}
