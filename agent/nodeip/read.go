package nodeip

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/netdump"
)

// Read takes a snapshot of the network namespace of the calling thread.
func Read() (Snapshot, error) {
	var s Snapshot
	links, err := netdump.Links()
	if err != nil {
		return s, fmt.Errorf("reading the interfaces: %w", err)
	}
	addresses, err := netdump.Addresses()
	if err != nil {
		return s, fmt.Errorf("reading the addresses: %w", err)
	}
	s.Links = append(s.Links, lists.Map(links, func(l netlink.Link) Link { return link(l.Attrs()) })...)
	for _, a := range addresses {
		if got, ok := address(a); ok {
			s.Addresses = append(s.Addresses, got)
		}
	}
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		routes, err := netdump.List(func() ([]netlink.Route, error) { return netlink.RouteList(nil, family) })
		if err != nil {
			return s, fmt.Errorf("reading the routes: %w", err)
		}
		s.Routes = append(s.Routes, lists.FlatMap(routes, route)...)
	}
	return s, nil
}

func link(a *netlink.LinkAttrs) Link {
	return Link{
		Index:    a.Index,
		Name:     a.Name,
		Up:       a.RawFlags&unix.IFF_UP != 0,
		Loopback: a.RawFlags&unix.IFF_LOOPBACK != 0,
	}
}

func address(a netlink.Addr) (Address, bool) {
	p, ok := prefix(a.IPNet)
	return Address{
		Link:       a.LinkIndex,
		Prefix:     p,
		Label:      a.Label,
		Tentative:  a.Flags&unix.IFA_F_TENTATIVE != 0,
		DADFailed:  a.Flags&unix.IFA_F_DADFAILED != 0,
		Deprecated: a.Flags&unix.IFA_F_DEPRECATED != 0,
		// For IPv4 addresses the same bit means "secondary".
		Temporary: a.Flags&unix.IFA_F_TEMPORARY != 0 && p.Addr().Is6(),
	}, ok
}

// route returns one route for each next hop.
func route(r netlink.Route) []Route {
	if r.Type != unix.RTN_UNICAST {
		return nil
	}
	destination, ok := prefix(r.Dst)
	if r.Dst == nil {
		destination, ok = netip.PrefixFrom(netip.IPv4Unspecified(), 0), true
		if r.Family == netlink.FAMILY_V6 {
			destination = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
		}
	}
	if !ok {
		return nil
	}
	one := Route{
		Destination: destination,
		Source:      addr(r.Src),
		Metric:      r.Priority,
		Advertised:  r.Protocol == unix.RTPROT_RA || r.Protocol == unix.RTPROT_KERNEL && destination.Addr().Is6(),
	}
	hops := r.MultiPath
	if len(hops) == 0 {
		hops = []*netlink.NexthopInfo{{LinkIndex: r.LinkIndex, Gw: r.Gw, Via: r.Via, Flags: r.Flags}}
	}
	var out []Route
	for _, hop := range hops {
		if hop.Flags&unix.RTNH_F_DEAD != 0 {
			continue
		}
		one.Link, one.Gateway = hop.LinkIndex, addr(hop.Gw)
		if via, ok := hop.Via.(*netlink.Via); ok { // IPv4 through an IPv6 router (RFC 5549)
			one.Gateway = addr(via.Addr)
		}
		out = append(out, one)
	}
	return out
}

func prefix(n *net.IPNet) (netip.Prefix, bool) {
	if n == nil {
		return netip.Prefix{}, false
	}
	bits, _ := n.Mask.Size()
	p := netip.PrefixFrom(addr(n.IP), bits)
	return p, p.IsValid()
}

func addr(ip net.IP) netip.Addr {
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
}
