package v1alpha1

import (
	"net/netip"
	"slices"
)

// NodeNetworks are the networks that the nodes' addresses are in, as a node with these
// interfaces finds them. Whatever asks whether an address is a node's goes by them.
//
// They are the machine networks, as long as these hold the VIPs. A VIP in none of them
// shows that the machine networks of its family say nothing about where nodes are (hard
// case 44): then those without a VIP do not count, and the network of such a VIP is the
// one of the interface that it goes to (Bind): the VIP's own subnet, else that of the
// default route. Where the load balancer is outside of the cluster, its addresses say
// nothing about the nodes either, and the machine networks count as well.
//
// Without interfaces, networks that only a node can know are missing.
func (s *ClusterConfigSpec) NodeNetworks(interfaces []Interface) []netip.Prefix {
	n := Node{Interfaces: interfaces}
	return s.networks(func(vip netip.Addr) (netip.Prefix, bool) {
		b, how := n.bind(vip)
		return b.Source.Masked(), how >= onDefaultRoute
	})
}

// AssumedNetworks are NodeNetworks where there is no node to ask, as for nodes that are
// made up: a VIP in no machine network is taken to be in a usual one.
func (s *ClusterConfigSpec) AssumedNetworks() []netip.Prefix {
	return s.networks(func(vip netip.Addr) (netip.Prefix, bool) {
		return UsualNetwork(vip), s.LoadBalancer != LoadBalancerExternal
	})
}

// UsualNetwork is the network around an address that most networks would have: a /24
// of IPv4, a /64 of IPv6 (RFC 7421).
func UsualNetwork(a netip.Addr) netip.Prefix {
	bits := 64
	if a.Is4() {
		bits = 24
	}
	return netip.PrefixFrom(a, bits).Masked()
}

// networks asks find for the network of each VIP that is in no machine network.
func (s *ClusterConfigSpec) networks(find func(vip netip.Addr) (netip.Prefix, bool)) (out []netip.Prefix) {
	add := func(p netip.Prefix) {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	outside := s.VIPsOutside()
	for _, n := range s.MachineNetworks {
		family := func(vip netip.Addr) bool { return vip.Is4() == n.Addr().Is4() }
		if s.LoadBalancer == LoadBalancerExternal || !slices.ContainsFunc(outside, family) || s.holdsVIP(n) {
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

// VIPsOutside are the VIPs in none of the machine networks.
func (s *ClusterConfigSpec) VIPsOutside() (out []netip.Addr) {
	for _, g := range s.Groups {
		for _, vip := range g.VIPs {
			if !slices.ContainsFunc(s.MachineNetworks, func(n netip.Prefix) bool { return n.Contains(vip) }) {
				out = append(out, vip)
			}
		}
	}
	return out
}

func (s *ClusterConfigSpec) holdsVIP(n netip.Prefix) bool {
	return slices.ContainsFunc(s.Groups, func(g Group) bool { return slices.ContainsFunc(g.VIPs, n.Contains) })
}

// VIPNetworks are those of a list of networks that hold VIPs.
func (s *ClusterConfigSpec) VIPNetworks(networks []netip.Prefix) (out []netip.Prefix) {
	for _, n := range networks {
		if s.holdsVIP(n) {
			out = append(out, n)
		}
	}
	return out
}

// WithNetworks gives addresses the prefix lengths of their networks, as far as they are
// known or assumed, or that of a host to those that are in none.
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

// InNetworks says whether one of the networks holds an address.
func InNetworks(networks []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(a) })
}
