package vrrp

import (
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
)

// Member is a node's part in the election of one VIP of a group.
type Member struct {
	// VIP is the VIP of the group with this index.
	VIP   netip.Addr
	Index int
	// At is the link of the VIP, and the source address of adverts there.
	At v1alpha1.Binding
	// Peers are the other nodes that receive this node's adverts for the VIP.
	Peers []v1alpha1.Peer
	// AllKnown reports that all senders of adverts are among the peers.
	AllKnown bool
}

// PeerAddresses returns the destinations of unicast adverts, sorted.
func (m *Member) PeerAddresses() (out []netip.Addr) {
	for _, p := range m.Peers {
		if a, ok := p.AddressFor(m.At); ok && a != m.At.Source.Addr() {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}

// Bind returns the link and address of a VIP of a group on a node with these VRRP
// settings.
func Bind(n *v1alpha1.Node, g *v1alpha1.Group, vip netip.Addr, v v1alpha1.VRRPSettings) (b v1alpha1.Binding, ok bool) {
	if g.SharedWithOperator() && v.LikeOperator() {
		return n.BindAsListed(vip)
	}
	return n.BindKnown(vip)
}

// Join determines the VIPs of a group in whose election a node takes part with these
// settings, and its peers. leftOut has a line for each VIP of its role in which it takes no
// part.
func Join(s *v1alpha1.ClusterConfigSpec, n *v1alpha1.Node, g *v1alpha1.Group, v v1alpha1.VRRPSettings) (members []Member, leftOut []string) {
	if !s.Hosts(g, n.Role, n.Labels) {
		if n.Role == v1alpha1.RoleArbiter && g.Role != v1alpha1.GroupIngress {
			leftOut = []string{LeftOutArbiter.Text()}
		}
		return nil, leftOut
	}
	peers := peersOf(s, n, g)
	if why := reasonToStayOut(s, n, g, peers); why != "" {
		return nil, []string{why}
	}
	for i, vip := range g.VIPs {
		at, ok := Bind(n, g, vip, v)
		if !ok {
			leftOut = append(leftOut, LeftOutNoAddress.Text(vip))
			continue
		}
		received, why := reachablePeers(s, n, g, at, vip, peers, v.Mode)
		if why != "" {
			leftOut = append(leftOut, why)
			continue
		}
		members = append(members, Member{VIP: vip, Index: i, At: at, Peers: received, AllKnown: allKnown(s, n, g, at, received)})
	}
	if g.Together && len(members) < len(g.VIPs) {
		return nil, leftOut
	}
	return members, leftOut
}

// allKnown reports whether all senders of adverts are among the peers. The bootstrap
// knows the control plane, but the control plane may not know the address of the
// bootstrap, or only the one of one family that the etcd operator publishes, and must
// receive its adverts nevertheless.
func allKnown(s *v1alpha1.ClusterConfigSpec, n *v1alpha1.Node, g *v1alpha1.Group, bind v1alpha1.Binding, peers []v1alpha1.Peer) bool {
	return !s.Hosts(g, v1alpha1.RoleBootstrap, nil) || n.Role == v1alpha1.RoleBootstrap || n.BootstrapGone ||
		slices.ContainsFunc(peers, func(p v1alpha1.Peer) bool {
			_, known := p.AddressFor(bind)
			return known && p.Role == v1alpha1.RoleBootstrap
		})
}

// peersOf returns the other nodes that can hold the group's VIPs.
func peersOf(s *v1alpha1.ClusterConfigSpec, n *v1alpha1.Node, g *v1alpha1.Group) []v1alpha1.Peer {
	return lists.Filter(n.Peers, func(p v1alpha1.Peer) bool { return p.Name != n.Name && s.Hosts(g, p.Role, p.Labels) })
}

// reasonToStayOut returns why a node must not take part; empty if it may.
func reasonToStayOut(s *v1alpha1.ClusterConfigSpec, n *v1alpha1.Node, g *v1alpha1.Group, peers []v1alpha1.Peer) string {
	if g.Together && slices.ContainsFunc(g.VIPs, func(vip netip.Addr) bool { _, ok := n.Bind(vip); return !ok }) {
		// One VIP here would keep the other nodes from holding either: hard case 14.
		return LeftOutPairSplit.Text()
	}
	if n.Role == v1alpha1.RoleBootstrap {
		return ""
	}
	if n.Unregistered {
		return LeftOutUnregistered.Text()
	}
	// A bootstrap that is gone still receives adverts while it holds the VIP, but does
	// not count.
	gone := func(p v1alpha1.Peer) bool { return p.Role == v1alpha1.RoleBootstrap && n.BootstrapGone }
	lone := !slices.ContainsFunc(peers, func(p v1alpha1.Peer) bool { return !gone(p) })
	if g.Role == v1alpha1.GroupIngress || !lone || s.ControlPlane.Replicas == 1 {
		return ""
	}
	// Hard case 13: of two control-plane nodes one may be alone for a while, and is the
	// only one that can serve once the bootstrap has gone.
	if s.ControlPlane.Replicas == 2 && n.BootstrapGone {
		return ""
	}
	return LeftOutAlone.Text()
}

// reachablePeers returns the peers that receive a node's adverts for a VIP outside of the network
// of the first API VIPs, or why the node must not take part: no peer would receive its
// adverts, and both sides would hold the VIP. That is the case where others have an
// address in the VIP's network and this node has none, and in unicast mode where none of
// theirs is known. Where no node has one, the VIP is where all others are (hard case 11).
//
// Workers report their own addresses, so these must not push another node out of an
// ingress group, or into one in which it receives no adverts (hard case 39): a node
// decides by its own address in the VIP's network, and by being listed at it.
//
// A node bound as listed has all nodes as peers, which reach it there.
func reachablePeers(s *v1alpha1.ClusterConfigSpec, n *v1alpha1.Node, g *v1alpha1.Group, bind v1alpha1.Binding, vip netip.Addr, peers []v1alpha1.Peer, mode v1alpha1.Mode) (reachable []v1alpha1.Peer, why string) {
	if g.Name == v1alpha1.FirstAPI || len(peers) == 0 {
		return peers, ""
	}
	networks, asListed := s.NodeNetworks(n.Interfaces), !bind.Network.IsValid()
	bind, _ = n.Bind(vip) // the node's address in the VIP's network, if any
	within := func(a netip.Addr) bool {
		return bind.Source.Contains(vip) && bind.Source.Contains(a) ||
			slices.ContainsFunc(networks, func(m netip.Prefix) bool { return m.Contains(vip) && m.Contains(a) })
	}
	reachable = lists.Filter(peers, func(p v1alpha1.Peer) bool {
		return slices.ContainsFunc(p.Addresses, within) || slices.ContainsFunc(p.Elsewhere, within)
	})
	ingress, unicast := g.Role == v1alpha1.GroupIngress, mode != v1alpha1.ModeMulticast && !sharesFirst(s, n, bind)
	switch here := within(bind.Source.Addr()); {
	case !here && ingress && networkHasNodes(s, n, vip, within):
		return nil, LeftOutElsewhere.Text(vip)
	case !here && ingress, asListed:
		return peers, ""
	case here && ingress && unicast && n.Listed != nil && !slices.ContainsFunc(n.Listed, within):
		return nil, LeftOutUnknownSource.Text(vip)
	case here && len(reachable) > 0:
		return reachable, ""
	case !here && len(reachable) > 0:
		return nil, LeftOutElsewhereAPI.Text(vip)
	case here && unicast:
		return nil, LeftOutNoPeer.Text(vip)
	}
	return peers, ""
}

// networkHasNodes reports, independent of workers' claims, whether nodes are in the network of
// a VIP: the control plane is, or it is one of several machine networks of its family. A
// single machine network may be without nodes (hard case 11).
func networkHasNodes(s *v1alpha1.ClusterConfigSpec, n *v1alpha1.Node, vip netip.Addr, within func(netip.Addr) bool) bool {
	family, holds := 0, false
	for _, m := range s.MachineNetworks {
		if m.Addr().Is4() == vip.Is4() {
			family++
			holds = holds || m.Contains(vip)
		}
	}
	return holds && family > 1 || slices.ContainsFunc(n.Peers, func(p v1alpha1.Peer) bool {
		return (p.Role == v1alpha1.RoleMaster || p.Role == v1alpha1.RoleArbiter) && slices.ContainsFunc(p.Addresses, within)
	})
}

// sharesFirst reports whether a VIP has the same binding on a node as a first API VIP.
func sharesFirst(s *v1alpha1.ClusterConfigSpec, n *v1alpha1.Node, bind v1alpha1.Binding) bool {
	return slices.ContainsFunc(s.Groups[0].VIPs, func(first netip.Addr) bool {
		b, ok := n.Bind(first)
		return ok && b == bind
	})
}
