package v1alpha1

import (
	"fmt"
	"net/netip"
	"slices"
)

// Roles of nodes that vipgen knows by name.
const (
	RoleBootstrap = "bootstrap"
	RoleMaster    = "master"
	RoleWorker    = "worker"
	RoleArbiter   = "arbiter"
)

// Node holds the facts that only a node knows. The agent discovers them; `vipgen preview` takes
// them from the user.
type Node struct {
	// Name is the node's name in the Kubernetes API.
	Name string `json:"name"`
	// Role is the pool: bootstrap, master, worker, arbiter or a custom one.
	Role string `json:"role"`
	// Labels are the node's labels, if known.
	Labels map[string]string `json:"labels,omitempty"`
	// Listed are the node's addresses in the cluster's list of nodes, for VIPs in any network;
	// nil if unknown.
	Listed []netip.Addr `json:"listed,omitempty"`
	// Interfaces are the interfaces with global addresses, without VIPs.
	Interfaces []Interface `json:"interfaces"`
	// Peers are all other known nodes.
	Peers []Peer `json:"peers,omitempty"`
	// Unregistered is set for a node that is not in the cluster's list of nodes, so that it
	// must not take part (hard case 3). The bootstrap never is.
	Unregistered bool `json:"unregistered,omitempty"`
	// BootstrapGone is set when the bootstrap's API server is known to be gone.
	BootstrapGone bool `json:"bootstrapGone,omitempty"`
	// VRRP are the settings in force; nil means those the cluster starts with.
	VRRP *VRRPSettings `json:"vrrp,omitempty"`
	// Upstreams are the DNS servers of the node's network.
	Upstreams []netip.Addr `json:"upstreams,omitempty"`
	// NoIPv6 is set where the kernel has IPv6 disabled (hard case 25).
	NoIPv6 bool `json:"noIPv6,omitempty"`
	// HAProxy is the version of the node's HAProxy, such as "2.6"; empty means the oldest in
	// OpenShift's images (hard case 29).
	HAProxy string `json:"haproxy,omitempty"`
}

// HAProxyAtLeast reports whether the node's HAProxy is known to be at least that version.
func (n *Node) HAProxyAtLeast(major, minor int) bool {
	var a, b int
	if _, err := fmt.Sscanf(n.HAProxy, "%d.%d", &a, &b); err != nil {
		return false
	}
	return a > major || a == major && b >= minor
}

// VIPLabel is the label of a VIP's address (IFA_LABEL, for IPv4 alone), as OpenShift's own
// keepalived sets it. OVN-Kubernetes takes no address with this label suffix for the node's own
// (hard case 33).
const VIPLabel = "vip"

// Interface is a network interface.
type Interface struct {
	Name string `json:"name"`
	// Addresses have their prefix length; VIPs are left out.
	Addresses []netip.Prefix `json:"addresses"`
	// DefaultRoute4 and DefaultRoute6 are set where the interface has the default route with
	// the lowest metric of that family.
	DefaultRoute4 bool `json:"defaultRoute4,omitempty"`
	DefaultRoute6 bool `json:"defaultRoute6,omitempty"`
}

// OwnAddresses returns the addresses of interfaces, in order.
func OwnAddresses(interfaces []Interface) (out []netip.Addr) {
	for _, i := range interfaces {
		for _, p := range i.Addresses {
			out = append(out, p.Addr())
		}
	}
	return out
}

// Binding is the place of a VIP on a node.
type Binding struct {
	Interface string
	// Source is the node's own address there, with its prefix.
	Source netip.Prefix
	// Network is the network in which other nodes are reached, if they have an address in it.
	// The zero value means their first address.
	Network netip.Prefix
}

// Bind returns the place of a VIP: the interface with the narrowest network that holds the VIP,
// else the one with the default route of the VIP's family (hard case 11), and of equally good
// addresses the one that the cluster lists first, which the others know. ok is false when the
// node has no address of that family.
func (n *Node) Bind(vip netip.Addr) (b Binding, ok bool) {
	b, how := n.bind(vip)
	b.Network = b.Source.Masked()
	return b, how >= ofFamily
}

// BindAsListed is Bind as the operator's own keepalived does it: the VIP goes to the interface
// with kubelet's address of its family, which is the first that the cluster lists for the node,
// and other nodes are reached at theirs, whatever network the VIP is in (hard case 46;
// baremetal-runtimecfg, getInterfaceAndNonVIPAddr and getNodeIpForRequestedIpStack). It falls
// back to Bind for a node that is listed at none of its addresses, for the bootstrap, which is
// not listed, and where the list is unknown.
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
// the node's address in the VIP's network, the first listed one, if it is on the same
// interface.
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

// listed returns the first address of a VIP's family that the cluster lists for the node; found
// is false if the node does not have it.
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

// Ranks of an address for a VIP. An address in the VIP's network adds the network's prefix
// length.
const (
	ofFamily = iota
	onDefaultRoute
	inVIPNetwork
)

// bind is Bind with the rank of the address; less than ofFamily where there is none.
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

func (n *Node) listedBefore(a, b netip.Addr) bool {
	i, j := slices.Index(n.Listed, a), slices.Index(n.Listed, b)
	return i >= 0 && (j < 0 || i < j)
}

// Own returns the node's addresses, one for each family of the networks, without regard to a
// VIP: that of the interface with the default route, by which the node itself is known, else
// one in the networks.
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

// Has reports whether the peer has an address.
func (p Peer) Has(a netip.Addr) bool {
	return slices.Contains(p.Addresses, a) || slices.Contains(p.Elsewhere, a)
}

// AddressFor returns the peer's address for adverts: the one in the network of the binding,
// else its first of that family.
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

// RoleLabel returns the label that OpenShift puts on the nodes of a pool.
func RoleLabel(role string) string { return "node-role.kubernetes.io/" + role }

// RemoteWorkerLabel is the label of a remote worker (hard case 9): kubelet gives it to the node
// on bare metal. It keeps routers, and so the ingress VIPs, off the node.
const RemoteWorkerLabel = "node.openshift.io/remote-worker"

// Hosts reports whether a node with a role and labels can hold the group's VIPs. nil labels are
// unknown: then those that OpenShift gives to nodes of the role are used.
func (s *ClusterConfigSpec) Hosts(g *Group, role string, labels map[string]string) bool {
	switch {
	case g.Role != GroupIngress && role == RoleArbiter:
		// An arbiter has no API server but a HAProxy in front of the others'. OpenShift's own
		// keepalived sends it no adverts: both would hold the VIP (hard case 32).
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

// ImpliedLabels returns the labels that OpenShift gives to nodes of a role.
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
