package nodeip

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// Family of addresses.
type Family string

// The families, as Kubernetes calls them.
const (
	ipv4 Family = "IPv4"
	ipv6 Family = "IPv6"
)

func familyOf(a netip.Addr) Family {
	if a.Is4() {
		return ipv4
	}
	return ipv6
}

// Choice is which of its addresses the node is to be known by.
type Choice struct {
	// Addresses has every family that the cluster uses, the primary first.
	Addresses []Chosen `json:"addresses"`
	// RemoteWorker says that the node is in none of the networks where the VIPs
	// can be (hard case 9): it takes no part in electing who holds them.
	RemoteWorker bool `json:"remoteWorker"`
	// Interfaces are those with addresses of the node's own, VIPs left out, with
	// the networks that they are in.
	Interfaces []v1alpha1.Interface `json:"interfaces"`
	// Rejected are all other addresses, except loopback.
	Rejected []Rejected `json:"rejected,omitempty"`
}

// Chosen is the node's address of one family.
type Chosen struct {
	Family Family `json:"family"`
	// Address with the length of its network; the zero value while there is none.
	Address netip.Prefix `json:"address,omitzero"`
	// Interface that has the address.
	Interface string `json:"interface,omitempty"`
	// Why it is this one, or what is missing.
	Why string `json:"why"`
}

// Found says whether there is an address.
func (c Chosen) Found() bool { return c.Address.IsValid() }

// IPs returns what was found, primary family first; nothing while the primary
// family's is missing, since a node cannot do without it.
func (c Choice) IPs() []netip.Addr {
	var out []netip.Addr
	for i, a := range c.Addresses {
		switch {
		case a.Found():
			out = append(out, a.Address.Addr())
		case i == 0:
			return nil
		}
	}
	return out
}

// Missing returns the families without an address.
func (c Choice) Missing() []Chosen {
	return slices.DeleteFunc(slices.Clone(c.Addresses), Chosen.Found)
}

// Own returns all addresses of the node's own.
func (c Choice) Own() []netip.Addr {
	var out []netip.Addr
	for _, i := range c.Interfaces {
		for _, p := range i.Addresses {
			out = append(out, p.Addr())
		}
	}
	return out
}

// VIPs returns the VIPs of all groups, in their order.
func VIPs(spec *v1alpha1.ClusterConfigSpec) []netip.Addr {
	var out []netip.Addr
	for _, g := range spec.Groups {
		out = append(out, g.VIPs...)
	}
	return out
}

// whereNodesAre are the VIPs that say in which network the nodes have their
// addresses. Those of the API besides the first may be in another one, for clients
// there.
func whereNodesAre(spec *v1alpha1.ClusterConfigSpec) []netip.Addr {
	var out []netip.Addr
	for _, g := range spec.Groups {
		if !g.AdditionalAPI() {
			out = append(out, g.VIPs...)
		}
	}
	return out
}

// Choose decides for each family that the cluster uses: the address in the
// network of a hint; else the one that was chosen before; else the one in the
// narrowest network that holds a VIP; else that of the default route with the
// lowest metric (hard case 11); else one in a network of the nodes. An address that
// is the right one but still tentative is waited for: the family has none.
func Choose(s Snapshot, spec *v1alpha1.ClusterConfigSpec, p Preference) Choice {
	found := look(s, VIPs(spec))
	c := Choice{Interfaces: found.usable()}
	for _, r := range found.rejected {
		if !r.Address.IsLoopback() {
			c.Rejected = append(c.Rejected, r)
		}
	}
	// Where a node can hold VIPs follows from the network alone: its pods, which
	// know of no preference, come to the same.
	var impartial []Chosen
	for _, f := range families(spec) {
		c.Addresses = append(c.Addresses, found.pick(f, spec, p))
		impartial = append(impartial, found.pick(f, spec, Preference{}))
	}
	c.RemoteWorker = isRemote(impartial, c.Interfaces, spec)
	return c
}

// families that the cluster uses, primary first: those of the machine networks, and
// those of VIPs that nodes hold without any of them (hard case 44).
func families(spec *v1alpha1.ClusterConfigSpec) []Family {
	var out []Family
	for _, n := range spec.MachineNetworks {
		out = append(out, familyOf(n.Addr()))
	}
	if len(out) == 0 || spec.LoadBalancer != v1alpha1.LoadBalancerExternal {
		for _, v := range whereNodesAre(spec) {
			out = append(out, familyOf(v))
		}
	}
	if len(out) == 0 {
		out = append(out, ipv4)
	}
	first := out[0]
	if slices.ContainsFunc(out, func(f Family) bool { return f != first }) {
		return []Family{first, other(first)}
	}
	return []Family{first}
}

func other(f Family) Family {
	if f == ipv4 {
		return ipv6
	}
	return ipv4
}

func (s survey) pick(f Family, spec *v1alpha1.ClusterConfigSpec, p Preference) Chosen {
	c := s.preferred(f, p)
	if !c.Found() {
		c = s.inVIPNetwork(f, spec)
	}
	if !c.Found() {
		c = s.onDefaultRoute(f)
	}
	if !c.Found() {
		c = s.inNodeNetwork(f, spec)
	}
	c.Family = f
	switch {
	case !c.Found():
		c.Why = fmt.Sprintf("no interface has an %s address in the network of a VIP, on a default route or in a network of the nodes", f)
	case slices.Contains(s.pending, c.Address.Addr()):
		c = Chosen{Family: f, Why: fmt.Sprintf("the kernel still checks whether another host has %s, too (%s)", c.Address.Addr(), c.Interface)}
	}
	return c
}

// inVIPNetwork looks VIP after VIP.
func (s survey) inVIPNetwork(f Family, spec *v1alpha1.ClusterConfigSpec) Chosen {
	for _, vip := range whereNodesAre(spec) {
		if familyOf(vip) != f {
			continue
		}
		if c := s.inNetworkOf(vip); c.Found() {
			c.Why = "in the network of VIP " + vip.String()
			return c
		}
	}
	return Chosen{}
}

// inNetworkOf gives the address in the narrowest network with another address. It
// goes by v1alpha1.Node.Bind, so that the node is known by the address that its
// keepalived sends from.
func (s survey) inNetworkOf(a netip.Addr) Chosen {
	node := v1alpha1.Node{Interfaces: s.interfaces}
	if b, ok := node.Bind(a); ok && b.Source.Contains(a) {
		return Chosen{Address: b.Source, Interface: b.Interface}
	}
	return Chosen{}
}

func (s survey) onDefaultRoute(f Family) Chosen {
	for _, i := range s.interfaces {
		if f == ipv4 && !i.DefaultRoute4 || f == ipv6 && !i.DefaultRoute6 {
			continue
		}
		for _, a := range i.Addresses {
			if familyOf(a.Addr()) == f {
				return Chosen{Address: a, Interface: i.Name, Why: "on the default route with the lowest metric"}
			}
		}
	}
	return Chosen{}
}

func (s survey) inNodeNetwork(f Family, spec *v1alpha1.ClusterConfigSpec) Chosen {
	for _, n := range spec.NodeNetworks(s.interfaces) {
		for _, i := range s.interfaces {
			for _, a := range i.Addresses {
				if familyOf(a.Addr()) == f && n.Contains(a.Addr()) {
					return Chosen{Address: a, Interface: i.Name, Why: "in machine network " + n.String()}
				}
			}
		}
	}
	return Chosen{}
}
