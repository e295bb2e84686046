package v1alpha1

import (
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/internal/lists"
)

// NodeNetworks returns the networks of the nodes' addresses, as a node with these interfaces
// finds them; every check whether an address is a node's uses them.
//
// They are the machine networks, as long as these hold the VIPs. A VIP in none of them shows
// that the machine networks of its family are not those of the nodes (hard case 44): then those
// without a VIP do not count, and the network of such a VIP is that of the interface that it
// goes to (Bind): the VIP's own subnet, else that of the default route. The addresses of an
// external load balancer, and VIPs that routers know, are no evidence about the nodes, so the
// machine networks count as well; VIPs that routers know do not count beside those of VRRP.
//
// Without interfaces, networks that only a node can know are missing.
func (s *ClusterConfigSpec) NodeNetworks(interfaces []Interface) []netip.Prefix {
	n := Node{Interfaces: interfaces}
	return s.networks(func(vip netip.Addr) (netip.Prefix, bool) {
		b, how := n.bind(vip)
		return b.Source.Masked(), how >= onDefaultRoute
	})
}

// AssumedNetworks is NodeNetworks without a node, as for nodes that are made up: a VIP in no
// machine network is taken to be in a UsualNetwork.
func (s *ClusterConfigSpec) AssumedNetworks() []netip.Prefix {
	return s.networks(func(vip netip.Addr) (netip.Prefix, bool) {
		return UsualNetwork(vip), s.LoadBalancer != LoadBalancerExternal && !s.OnlyRouted()
	})
}

// UsualNetwork returns the most common network around an address: a /24 of IPv4, a /64 of IPv6
// (RFC 7421).
func UsualNetwork(a netip.Addr) netip.Prefix {
	bits := 64
	if a.Is4() {
		bits = 24
	}
	return netip.PrefixFrom(a, bits).Masked()
}

// networks calls find for the network of each VIP that is in no machine network.
func (s *ClusterConfigSpec) networks(find func(vip netip.Addr) (netip.Prefix, bool)) (out []netip.Prefix) {
	add := func(p netip.Prefix) {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	outside := s.VIPsOutside()
	for _, n := range s.MachineNetworks {
		family := func(vip netip.Addr) bool { return vip.Is4() == n.Addr().Is4() }
		if s.LoadBalancer == LoadBalancerExternal || s.OnlyRouted() || !slices.ContainsFunc(outside, family) || s.holdsVIP(n) {
			add(n)
		}
	}
	for _, vip := range outside {
		if p, ok := find(vip); ok {
			add(p)
		}
	}
	return out
}

// OnlyRouted reports whether routers know all VIPs that nodes have.
func (s *ClusterConfigSpec) OnlyRouted() bool { return s.Routed() && !s.ByVRRP() }

// onSubnets returns the groups whose VIPs tell where nodes are.
func (s *ClusterConfigSpec) onSubnets() []Group {
	if s.OnlyRouted() {
		return s.Groups
	}
	return s.Elected().Groups
}

// VIPsOutside returns the VIPs in none of the machine networks, without those that routers know
// beside VIPs of VRRP.
func (s *ClusterConfigSpec) VIPsOutside() (out []netip.Addr) {
	for _, g := range s.onSubnets() {
		for _, vip := range g.VIPs {
			if !slices.ContainsFunc(s.MachineNetworks, func(n netip.Prefix) bool { return n.Contains(vip) }) {
				out = append(out, vip)
			}
		}
	}
	return out
}

func (s *ClusterConfigSpec) holdsVIP(n netip.Prefix) bool {
	return slices.ContainsFunc(s.onSubnets(), func(g Group) bool { return slices.ContainsFunc(g.VIPs, n.Contains) })
}

// VIPNetworks returns the networks that hold VIPs.
func (s *ClusterConfigSpec) VIPNetworks(networks []netip.Prefix) []netip.Prefix {
	return lists.Filter(networks, s.holdsVIP)
}

// WithNetworks returns addresses with the prefix lengths of their known or assumed networks, or
// that of a host where there is none.
func (s *ClusterConfigSpec) WithNetworks(list []netip.Addr) []netip.Prefix {
	networks := s.AssumedNetworks()
	var out []netip.Prefix
	for _, a := range list {
		bits := a.BitLen()
		for _, n := range networks {
			if n.Contains(a) {
				bits = n.Bits()
			}
		}
		out = append(out, netip.PrefixFrom(a, bits))
	}
	return out
}

// InNetworks reports whether one of the networks holds an address.
func InNetworks(networks []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(a) })
}

// IsEdge reports whether an address is the first of a network, or the last of an IPv4 one.
func IsEdge(p netip.Prefix, a netip.Addr) bool {
	if p.Bits() >= a.BitLen()-1 {
		return false
	}
	return a == p.Masked().Addr() || a.Is4() && !p.Contains(a.Next())
}
