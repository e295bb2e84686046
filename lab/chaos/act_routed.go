package chaos

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/lab"
)

// Variants of dropBFD.
const (
	toRouter   = "to-router"
	fromRouter = "from-router"
)

// rackRouter returns the router of the rack whose nodes the fault names.
func (a *act) rackRouter() *lab.Router { return a.routed.Racks[lab.RackOf(a.fault.Nodes[0])] }

// unsureRack records that the nodes of a rack may be reached or not; end ends that when their
// sessions had time to open again.
func (a *act) unsureRack() (end func()) {
	var marks []*mark
	for _, n := range a.nodes {
		marks = append(marks, a.begin(n, condition{Effect: effectUnwatched}))
	}
	return func() {
		for _, m := range marks {
			m.end(a.settle(2 * a.bounds.Session)) // with the nodes, and with the core
		}
	}
}

// killDaemon kills a daemon of a rack's router, and starts it again; BIRD is one for all. With zebra
// FRR's watchfrr starts all (phased restart): bgpd alone would not name its sessions to bfdd again.
func (a *act) killDaemon(context.Context) (undo, error) {
	r, name := a.rackRouter(), a.fault.What
	if r.BIRD() {
		name = r.Daemons[0]
	}
	end := a.unsureRack()
	r.KillDaemon(name)
	return func(ctx context.Context) error {
		defer end()
		again := []string{name}
		if name == "zebra" {
			again = r.Daemons
		}
		for _, d := range again {
			r.KillDaemon(d)
			if err := r.Start(ctx, d); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

func (a *act) resetSessions(context.Context) (undo, error) {
	end := a.unsureRack()
	defer end()
	return nil, a.rackRouter().Control("restart all", "clear bgp *")
}

// reloadRouter has a router apply its configuration and import filters again, which ends no session.
func (a *act) reloadRouter(context.Context) (undo, error) {
	return nil, a.rackRouter().Control("configure", "clear bgp * soft in")
}

// dropBFD drops the BFD packets of a node in one direction, with or without power.
func (a *act) dropBFD(ctx context.Context) (undo, error) {
	n, hook := a.node(), "output"
	if a.fault.What == fromRouter {
		hook = "input"
	}
	nft := func(ctx context.Context, command string) error {
		out, err := n.Command(ctx, "nft", command).CombinedOutput()
		if err != nil {
			return fmt.Errorf("nft %s on %s: %w: %s", command, n.Name, err, out)
		}
		return nil
	}
	m := a.begin(n, condition{Effect: effectUnwatched})
	return func(ctx context.Context) error {
		err := nft(ctx, "delete table inet chaos")
		m.end(a.settle(2 * a.bounds.Session))
		return err
	}, nft(ctx, fmt.Sprintf("table inet chaos { chain bfd { type filter hook %s priority 0; udp dport %d drop; }; }", hook, v1alpha1.BFDPort))
}

// floodRoutes has a router of the first rack's nodes announce routes to them, of which they use none.
func (a *act) floodRoutes(context.Context) (undo, error) {
	flood := func(how string) error { return a.routed.Hostile.Control(how+" "+a.fault.What, "") }
	return func(ctx context.Context) error {
		for _, n := range a.cluster.Nodes() {
			a.checkForeign(ctx, n)
		}
		return flood("disable")
	}, flood("enable")
}

// checkForeign reports a violation if a node uses routes besides those to its subnet, its router and
// the VIPs that are its own.
func (r *run) checkForeign(ctx context.Context, n *lab.Node) {
	out, err := n.Command(ctx, "ip", "route").CombinedOutput()
	if err != nil {
		return // it has no power
	}
	for line := range strings.Lines(string(out)) {
		if own := strings.HasPrefix(line, "default via "+n.Gateway().String()+" ") || strings.Contains(line, " scope link src "); !own {
			at := r.record.now()
			r.violate(Violation{Rule: foreignRoute, From: at, To: at, Nodes: []string{n.Name}, Happened: fmt.Sprintf("%s has the route %s", n.Name, strings.TrimSpace(line))})
		}
	}
}

// checkAnnounced returns an error unless all healthy nodes announce their VIPs with the best
// preference to their routers, which send packets to all of them.
func (r *run) checkAnnounced() error {
	routes, _ := r.routed.spans(r.record.now())
	for i := range r.cluster.Spec().Groups {
		g := &r.cluster.Spec().Groups[i]
		for _, n := range r.cluster.Nodes() {
			if !r.serves(n, g) {
				continue
			}
			if err := lab.Announces(n, g.VIPs); err != nil {
				return err
			}
			for _, vip := range g.VIPs {
				if !slices.ContainsFunc(routes, func(s span) bool { return s.VIP == vip && s.Node == n.Name }) {
					return fmt.Errorf("%s: its router sends it no packets for %v", n.Name, vip)
				}
			}
		}
	}
	return nil
}
