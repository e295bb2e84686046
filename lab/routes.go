package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/netdump"
)

// Routes returns the next hops of the router's IPv4 routes, by the address of the destination.
func (r *Router) Routes() (map[netip.Addr][]netip.Addr, error) {
	list, err := netdump.List(func() ([]netlink.Route, error) {
		return r.table.RouteListFiltered(unix.AF_INET, &netlink.Route{Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_TABLE)
	})
	out := map[netip.Addr][]netip.Addr{}
	for _, route := range list {
		if route.Dst == nil {
			continue
		}
		hops := route.MultiPath
		if len(hops) == 0 {
			hops = []*netlink.NexthopInfo{{Gw: route.Gw}}
		}
		to, _ := netip.AddrFromSlice(route.Dst.IP)
		for _, hop := range hops {
			if via, ok := netip.AddrFromSlice(hop.Gw); ok {
				out[to.Unmap()] = append(out[to.Unmap()], via.Unmap())
			}
		}
	}
	return out, err
}

// Paths returns the addresses of the nodes that the routers send connections of the client to, by its
// ports: each router chooses by a hash. A connection that no node gets has none.
func (r *Routers) Paths(to netip.AddrPort, ports []uint16) []netip.Addr {
	out := r.Core.hops(to, ports)
	for i, rack := range r.Racks {
		for k, hop := range rack.hops(to, ports) {
			if out[k] == racks[i].up.Addr() {
				out[k] = hop
			}
		}
	}
	return out
}

// hops returns the next hops of connections from ports of the client.
func (r *Router) hops(to netip.AddrPort, ports []uint16) []netip.Addr {
	var b strings.Builder
	for _, port := range ports {
		fmt.Fprintf(&b, "route get %v from %v iif %s ipproto tcp sport %d dport %d\n", to.Addr(), rackClient.Addr(), r.Link, port, to.Port())
	}
	c := r.Command(context.Background(), "ip", "-oneline", "-force", "-batch", "-")
	c.Stdin = strings.NewReader(b.String())
	text, _ := c.Output() // it fails while there is no route
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	out := make([]netip.Addr, len(ports))
	if len(lines) != len(ports) {
		return out
	}
	for i, line := range lines {
		if _, hop, ok := strings.Cut(line, " via "); ok {
			hop, _, _ = strings.Cut(hop, " ")
			out[i], _ = netip.ParseAddr(hop)
		}
	}
	return out
}

// Serving returns the nodes that have the VIPs of a group when all are healthy.
func (c *Cluster) Serving(g *v1alpha1.Group) []*Node {
	return slices.DeleteFunc(c.Nodes(), func(n *Node) bool {
		return !c.Spec().Hosts(g, n.Role, nil) || g.Role == v1alpha1.GroupIngress && n.Router(g.Controller) == nil
	})
}

// Announces returns an error unless a node announces VIPs with the best preference to the router of
// its rack, and BFD is up.
func Announces(n *Node, vips []netip.Addr) error {
	s, err := Published[state.BGP](n)
	if err != nil || s == nil {
		return errors.Join(err, fmt.Errorf("%s: its bgp job publishes no state", n.Name))
	}
	for _, vip := range vips {
		if !slices.ContainsFunc(s.VIPs, func(v state.AnnouncedVIP) bool { return v.VIP == vip && v.Announced && v.Preference == 0 }) {
			return fmt.Errorf("%s does not announce %v with preference 0", n.Name, vip)
		}
	}
	for _, p := range s.Peers {
		if p.Address == n.gateway && (!p.Established() || p.BFD != "up") {
			return fmt.Errorf("%s: its session with %v is %s, BFD %s", n.Name, p.Address, p.State, p.BFD)
		}
	}
	return nil
}
