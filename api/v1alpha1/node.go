package v1alpha1

import (
	"fmt"
	"net/netip"
	"slices"
)

// Roles of nodes that vipgen treats in a way of their own.
const (
	RoleBootstrap = "bootstrap"
	RoleMaster    = "master"
	RoleWorker    = "worker"
	RoleArbiter   = "arbiter"
)

// Node is what only a node knows about itself. The agent finds it out;
// `vipgen preview` takes it from the user.
type Node struct {
	// Name as the Kubernetes API knows it.
	Name string `json:"name"`
	// Role is the pool: bootstrap, master, worker, arbiter or a custom one.
	Role string `json:"role"`
	// Labels are the node's, where they are known.
	Labels map[string]string `json:"labels,omitempty"`
	// Listed are the addresses that the cluster lists the node at, for VIPs in any
	// network; nil where that is not known.
	Listed []netip.Addr `json:"listed,omitempty"`
	// Interfaces are those with global addresses, VIPs left out.
	Interfaces []Interface `json:"interfaces"`
	// Peers are all other nodes that are known.
	Peers []Peer `json:"peers,omitempty"`
	// Unregistered says that the node is not in the cluster's list of nodes, so
	// that it must not take part (hard case 3). The bootstrap never is.
	Unregistered bool `json:"unregistered,omitempty"`
	// BootstrapGone says that the bootstrap's API server is known to have gone.
	BootstrapGone bool `json:"bootstrapGone,omitempty"`
	// VRRP are the settings in force; nil means those the cluster starts with.
	VRRP *VRRPSettings `json:"vrrp,omitempty"`
	// Upstreams are the DNS servers that the node's network brings.
	Upstreams []netip.Addr `json:"upstreams,omitempty"`
	// NoIPv6 says that the kernel has IPv6 switched off (hard case 25).
	NoIPv6 bool `json:"noIPv6,omitempty"`
	// HAProxy is the version of HAProxy there, such as "2.6"; empty if it is not
	// known, which is taken for the oldest that OpenShift's images have (hard case
	// 29).
	HAProxy string `json:"haproxy,omitempty"`
}

// HAProxyAtLeast says whether the node's HAProxy is known to be of that version
// or a later one.
func (n *Node) HAProxyAtLeast(major, minor int) bool {
	var a, b int
	if _, err := fmt.Sscanf(n.HAProxy, "%d.%d", &a, &b); err != nil {
		return false
	}
	return a > major || a == major && b >= minor
}

// VIPLabel is the label of the address of a VIP (IFA_LABEL, for IPv4 alone), as
// OpenShift's own keepalived gives it. OVN-Kubernetes takes no address whose label ends
// so for the node's own (hard case 33).
const VIPLabel = "vip"

// Interface is a network interface.
type Interface struct {
	Name string `json:"name"`
	// Addresses with their prefix length, VIPs left out.
	Addresses []netip.Prefix `json:"addresses"`
	// DefaultRoute4 and DefaultRoute6 say that this interface has the default
	// route with the lowest metric of that family.
	DefaultRoute4 bool `json:"defaultRoute4,omitempty"`
	DefaultRoute6 bool `json:"defaultRoute6,omitempty"`
}

// Binding is where a VIP goes on a node.
type Binding struct {
	Interface string
	// Source is the node's own address there, with its prefix.
	Source netip.Prefix
	// Network is where other nodes are reached, if they are listed in it. The zero value is
	// for nodes that are reached at the first address that they are listed at.
	Network netip.Prefix
}

// Bind finds where a VIP goes: the interface with the narrowest network that
// holds the VIP, else the one with the default route of the VIP's family (hard
// case 11), of several addresses that fit as well the one that the cluster lists first,
// which the others know. ok is false when the node has no address of that family at all.
func (n *Node) Bind(vip netip.Addr) (b Binding, ok bool) {
	b, how := n.bind(vip)
	b.Network = b.Source.Masked()
	return b, how >= ofFamily
}

// BindAsListed is Bind as the operator's own keepalived does it: the VIP goes to the interface
// with kubelet's address of its family, which is the first that the cluster lists the node
// at, and other nodes are reached at theirs, whatever network the VIP is in (hard case 46;
// baremetal-runtimecfg, getInterfaceAndNonVIPAddr and getNodeIpForRequestedIpStack). A node
// that is listed at none of its addresses is bound as Bind does it. The bootstrap is not
// listed at all; where nothing is known of what is listed, BindAsListed is Bind.
func (n *Node) BindAsListed(vip netip.Addr) (b Binding, ok bool) {
	b, ok = n.Bind(vip)
	if n.Listed == nil && n.Role != RoleBootstrap {
		return b, ok
	}
	b.Network = netip.Prefix{}
	if listed, found := n.listed(vip); found {
		return listed, true
	}
	return b, ok
}

// BindKnown is Bind at an address that the other nodes know: where the cluster does not list
// the node at the one in the VIP's network, at the first that it is listed at, if the same
// interface has it.
func (n *Node) BindKnown(vip netip.Addr) (b Binding, ok bool) {
	b, ok = n.Bind(vip)
	if slices.Contains(n.Listed, b.Source.Addr()) {
		return b, ok
	}
	if listed, found := n.listed(vip); found && listed.Interface == b.Interface {
		b.Source = listed.Source
	}
	return b, ok
}

// listed finds the first address of a VIP's family that the cluster lists the node at; found
// is false if that is none of its own.
func (n *Node) listed(vip netip.Addr) (b Binding, found bool) {
	first := slices.IndexFunc(n.Listed, func(a netip.Addr) bool { return a.Is4() == vip.Is4() })
	if first < 0 {
		return b, false
	}
	for _, i := range n.Interfaces {
		for _, a := range i.Addresses {
			if a.Addr() == n.Listed[first] {
				return Binding{Interface: i.Name, Source: a}, true
			}
		}
	}
	return b, false
}

// How well an address fits a VIP. One in the VIP's network is worth the length of that
// network's prefix more.
const (
	ofFamily = iota
	onDefaultRoute
	inVIPNetwork
)

// bind is Bind, with how well the address fits; less than ofFamily where there is none.
func (n *Node) bind(vip netip.Addr) (b Binding, best int) {
	best = -1
	for _, i := range n.Interfaces {
		for _, a := range i.Addresses {
			if a.Addr().Is4() != vip.Is4() {
				continue
			}
			how := ofFamily
			switch {
			case a.Contains(vip):
				how = inVIPNetwork + a.Bits()
			case vip.Is4() && i.DefaultRoute4, vip.Is6() && i.DefaultRoute6:
				how = onDefaultRoute
			}
			if how > best || how == best && n.listedBefore(a.Addr(), b.Source.Addr()) {
				best, b = how, Binding{Interface: i.Name, Source: a}
			}
		}
	}
	return b, best
}

// listedBefore says whether the cluster lists the node at a before it does so at b.
func (n *Node) listedBefore(a, b netip.Addr) bool {
	i, j := slices.Index(n.Listed, a), slices.Index(n.Listed, b)
	return i >= 0 && (j < 0 || i < j)
}

// Own are the node's addresses, one of each family that the networks have, where no
// VIP says which: as the node itself is known by, that of the interface with the
// default route, else one in the networks.
func (n *Node) Own(networks []netip.Prefix) (out []netip.Addr) {
	is4 := []bool{true}
	if len(networks) > 0 {
		is4 = nil
	}
	for _, p := range networks {
		if !slices.Contains(is4, p.Addr().Is4()) {
			is4 = append(is4, p.Addr().Is4())
		}
	}
	for _, v4 := range is4 {
		if a, ok := n.own(v4, networks); ok {
			out = append(out, a)
		}
	}
	return out
}

func (n *Node) own(v4 bool, networks []netip.Prefix) (found netip.Addr, ok bool) {
	for _, i := range n.Interfaces {
		for _, p := range i.Addresses {
			a := p.Addr()
			switch {
			case a.Is4() != v4:
			case v4 && i.DefaultRoute4, !v4 && i.DefaultRoute6:
				return a, true
			case !ok && slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(a) }):
				found, ok = a, true
			}
		}
	}
	return found, ok
}

// Has reports whether an address is one of the peer's.
func (p Peer) Has(a netip.Addr) bool {
	return slices.Contains(p.Addresses, a) || slices.Contains(p.Elsewhere, a)
}

// AddressFor picks the peer's address to send adverts to: the one in the
// network of the binding, else its first of that family.
func (p Peer) AddressFor(b Binding) (netip.Addr, bool) {
	var first netip.Addr
	for _, a := range p.Addresses {
		if a.Is4() != b.Source.Addr().Is4() {
			continue
		}
		if b.Network.Contains(a) {
			return a, true
		}
		if !first.IsValid() {
			first = a
		}
	}
	if n := slices.IndexFunc(p.Elsewhere, b.Network.Contains); n >= 0 {
		return p.Elsewhere[n], true
	}
	return first, first.IsValid()
}

// RoleLabel is the label that OpenShift puts on the nodes of a pool.
func RoleLabel(role string) string { return "node-role.kubernetes.io/" + role }

// RemoteWorkerLabel is the label of a remote worker (hard case 9): kubelet gives it to the node
// on bare metal. It keeps routers, and so the ingress VIPs, off the node.
const RemoteWorkerLabel = "node.openshift.io/remote-worker"

// Hosts says whether a node of that role and with those labels can hold the
// group's VIPs. nil labels mean that they are not known: then they are those
// that OpenShift gives to nodes of the role.
func (s *ClusterConfigSpec) Hosts(g *Group, role string, labels map[string]string) bool {
	switch {
	case g.Role != GroupIngress && role == RoleArbiter:
		// It has no API server but a HAProxy in front of the others'. OpenShift's own
		// keepalived sends it no adverts: it would hold the VIP beside that (hard case 32).
		return !s.VRRP.LikeOpenShift()
	case g.AdditionalAPI():
		return role == RoleMaster
	case g.Role != GroupIngress:
		return role == RoleMaster || role == RoleBootstrap
	case role == RoleBootstrap || role == RoleArbiter:
		return false
	}
	if labels == nil {
		labels = s.ImpliedLabels(role)
	}
	for k, v := range g.NodeSelector {
		if got, ok := labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// ImpliedLabels are those that OpenShift gives to nodes of a role.
func (s *ClusterConfigSpec) ImpliedLabels(role string) map[string]string {
	l := map[string]string{RoleLabel(role): ""}
	switch {
	case role == RoleMaster:
		l[RoleLabel("control-plane")] = ""
		if s.ControlPlane.Schedulable {
			l[RoleLabel(RoleWorker)] = ""
		}
	case role != RoleArbiter && role != RoleBootstrap:
		l[RoleLabel(RoleWorker)] = ""
	}
	return l
}
