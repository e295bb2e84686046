package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/lab"
	"github.com/vipgen/vipgen/lab/report"
	"github.com/vipgen/vipgen/lab/testbed/probe"
)

// firstPort and ports are the client's ports for connections whose node has to be known, below those
// that its kernel chooses from (ip_local_port_range).
const (
	firstPort = 2048
	ports     = 32768 - firstPort
)

// awaitAnnounced waits until all nodes announce the VIPs of a group, and routers send connections to
// each.
func (s *subject) awaitAnnounced(ctx context.Context, g *v1alpha1.Group) error {
	var missing error
	err := lab.AwaitEvery(ctx, costlyPollEvery, "the routes to "+g.Name, func() (bool, error) {
		missing = nil
		for _, n := range s.Serving(g) {
			missing = errors.Join(missing, lab.Announces(n, g.VIPs))
			if missing == nil && len(s.portsTo(g, n.Address(), 256)) == 0 {
				missing = fmt.Errorf("routers send nothing to %s", n.Name)
			}
		}
		return missing == nil, nil
	})
	return errors.Join(err, missing)
}

// portsTo returns those of the first ports of the client whose connections routers send to a node.
func (s *subject) portsTo(g *v1alpha1.Group, node netip.Addr, first int) (out []uint16) {
	all := make([]uint16, first)
	for i := range all {
		all[i] = uint16(firstPort + i)
	}
	for i, at := range s.routers.Paths(s.at(g.Role, g.VIPs[0]), all) {
		if at == node {
			out = append(out, all[i])
		}
	}
	return out
}

// affected returns the node that a scenario affects: the holder of the VIP, or one of the nodes that
// announce it, by the phase.
func (s *subject) affected(ctx context.Context, role v1alpha1.GroupRole, phase float64) (*lab.Node, error) {
	if !s.Routed {
		return s.Holder(ctx, s.VIPs(role)[0])
	}
	on := slices.DeleteFunc(s.Serving(s.group(role)), func(n *lab.Node) bool { return !n.On() })
	return on[int(phase*float64(len(on)))], nil
}

// group returns the first group of a role.
func (s *subject) group(role v1alpha1.GroupRole) *v1alpha1.Group {
	groups := s.Spec().Groups
	return &groups[slices.IndexFunc(groups, func(g v1alpha1.Group) bool { return g.Role == role })]
}

// askRouted starts two clients: connections of one are those that routers send to the affected node,
// those of the other go to the other nodes. If all nodes are affected, there is only the first.
func (r *run) askRouted(vip netip.Addr) (err error) {
	to := r.at(r.scenario.VIP, vip)
	all := make([]uint16, ports)
	for i := range all {
		all[i] = uint16(firstPort + (r.asked+i)%ports)
	}
	r.asked += ports / 8 // a port is used again when its last connection is long over
	var hit, others []uint16
	for i, at := range r.routers.Paths(to, all) {
		if at == r.holder.Address() || r.scenario.fails != nil || r.gone != nil {
			hit = append(hit, all[i])
		} else if at.IsValid() {
			others = append(others, all[i])
		}
	}
	if len(hit) == 0 {
		return fmt.Errorf("routers send no connection to %s", r.holder.Name)
	}
	target := r.target(vip)
	target.Dial = r.dialFrom(hit)
	if r.probe, err = probe.Start(probe.Config{Target: target, Since: r.since}); err != nil || len(others) == 0 {
		return err
	}
	target.Dial = r.dialFrom(others)
	r.elsewhere, err = probe.Start(probe.Config{Target: target, Since: r.since})
	return err
}

// dialFrom returns a function that connects from the client's ports, one after the other. A closed
// connection leaves nothing behind (TIME-WAIT) that keeps its port from being used again.
func (r *run) dialFrom(ports []uint16) func(context.Context, string, string) (net.Conn, error) {
	var next atomic.Int64
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := r.Client.DialFrom(ctx, ports[int(next.Add(1)-1)%len(ports)], network, address)
		if err == nil {
			err = conn.(*net.TCPConn).SetLinger(0)
		}
		return conn, err
	}
}

// othersReport returns the result of connections to other nodes; nil if there were none.
func (r *run) othersReport() *report.Others {
	if r.elsewhere == nil {
		return nil
	}
	seen := r.elsewhere.End()
	return &report.Others{Outage: seen.Outage(), Lost: seen.Lost(), Asked: len(seen.Requests)}
}
