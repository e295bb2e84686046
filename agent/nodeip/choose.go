package nodeip

import (
	"cmp"
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
	// Interfaces are those that daemons can be configured with, with addresses of the
	// node's own, VIPs left out, and the networks that they are in.
	Interfaces []v1alpha1.Interface `json:"interfaces,omitempty"`
	// Unconfigured are addresses that the node can be known by, of interfaces that are not
	// in Interfaces.
	Unconfigured []Rejected `json:"unconfigured,omitempty"`
	// Rejected are all other addresses, except loopback.
	Rejected []Rejected `json:"rejected,omitempty"`
}

// LeftOut returns what is logged of addresses that do not count: Rejected without
// link-local ones, which every interface has, and Unconfigured.
func (c Choice) LeftOut() []Rejected {
	return append(slices.DeleteFunc(slices.Clone(c.Rejected), func(r Rejected) bool {
		return r.Address.IsLinkLocalUnicast()
	}), c.Unconfigured...)
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

// Choose decides for each family that the cluster uses: the address that was chosen before, or
// that its Node has, as long as the node has it; else the one in the narrowest network that holds a VIP, or that of a
// hint, which on platforms without VIPs of the operator's comes first; else one of the
// interface that the other family was found on so; else that of the default route with the
// lowest metric (hard case 11); else one in a network of the nodes. Interfaces that are up
// come before those that are down. An address that is the right one but still tentative is
// waited for: the family has none.
func Choose(s Snapshot, spec *v1alpha1.ClusterConfigSpec, p Preference) Choice {
	vips := VIPs(spec)
	found := look(s, vips, Link.unfit, Snapshot.listed)
	configured := look(s, vips, Link.unconfigured, Snapshot.on)
	c := Choice{Interfaces: configured.usable()}
	for _, r := range found.rejected {
		if !r.Address.IsLoopback() {
			c.Rejected = append(c.Rejected, r)
		}
	}
	for _, r := range configured.rejected {
		if !slices.ContainsFunc(found.rejected, func(f Rejected) bool { return f.Interface == r.Interface && f.Address == r.Address }) {
			c.Unconfigured = append(c.Unconfigured, r)
		}
	}
	for _, f := range families(spec) {
		c.Addresses = append(c.Addresses, found.pick(f, spec, p))
	}
	c.RemoteWorker = found.isRemote(spec, p.Hints)
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
	c := s.kept(f, p.Kept)
	if !c.Found() {
		c = s.registered(f, spec, p)
	}
	if !c.Found() {
		c = s.anew(f, spec, p.Hints)
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

// anew is the address of a node that has none yet.
func (s survey) anew(f Family, spec *v1alpha1.ClusterConfigSpec, hints []netip.Addr) Chosen {
	c := s.wanted(f, spec, hints)
	if !c.Found() {
		c = s.beside(s.wanted(other(f), spec, hints), f)
	}
	if !c.Found() {
		c = s.onDefaultRoute(f)
	}
	if !c.Found() {
		c = s.inNodeNetwork(f, spec)
	}
	return c
}

// wanted is the address in the network of a VIP or a hint. To the operator both are the same
// (AddressesRouting), and it takes any of them; here the network of the VIPs comes first,
// because its own keepalived puts the VIPs on the interface of this address. On platforms
// where the operator knows no VIPs, hints are all that it goes by.
func (s survey) wanted(f Family, spec *v1alpha1.ClusterConfigSpec, hints []netip.Addr) Chosen {
	find := []func(survey) Chosen{
		func(s survey) Chosen { return s.inNetworks("VIP", f, whereNodesAre(spec)) },
		func(s survey) Chosen { return s.inNetworks("hint", f, hints) },
	}
	if !spec.OperatorHasVIPs() {
		slices.Reverse(find)
	}
	for _, among := range []survey{s.onlyUp(), s} {
		for _, in := range find {
			if c := in(among); c.Found() {
				return c
			}
		}
	}
	return Chosen{}
}

// inNetworks returns the address in the network of the first of a list that has one.
func (s survey) inNetworks(of string, f Family, list []netip.Addr) Chosen {
	for _, a := range list {
		if familyOf(a) != f {
			continue
		}
		if c := s.inNetworkOf(a); c.Found() {
			c.Why = "in the network of " + of + " " + a.String()
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

// beside is the first address of a family on the interface with one of the other family.
func (s survey) beside(c Chosen, f Family) Chosen {
	for _, i := range s.interfaces {
		if i.Name != c.Interface {
			continue
		}
		for _, a := range i.Addresses {
			if familyOf(a.Addr()) == f {
				return Chosen{Address: a, Interface: i.Name, Why: "on the interface with the " + string(other(f)) + " address " + c.Why}
			}
		}
	}
	return Chosen{}
}

// onDefaultRoute is an address of the interface with the default route of the family, else of
// one with that of the other, as the operator's AddressesDefault takes any.
func (s survey) onDefaultRoute(f Family) (out Chosen) {
	for _, r := range s.defaultRoutes(f) {
		for _, i := range s.interfaces {
			if i.Name != r.link {
				continue
			}
			for _, a := range i.Addresses {
				if familyOf(a.Addr()) == f && (!out.Found() || s.ahead(a, out.Address, r.gateway)) {
					out = Chosen{Address: a, Interface: i.Name, Why: "on the default route with the lowest metric"}
				}
			}
		}
		if out.Found() {
			break
		}
	}
	return out
}

// ahead reports whether an address of the interface with the default route comes before
// another one: the one in the network of the router, a public one, the lower one, as in the
// operator's AddressesDefault from 4.21 on. What is tentative comes last.
func (s survey) ahead(a, b netip.Prefix, gateway netip.Addr) bool {
	rank := func(p netip.Prefix) (n int) {
		for i, worse := range []bool{p.Addr().IsPrivate(), !p.Contains(gateway), slices.Contains(s.pending, p.Addr())} {
			if worse {
				n |= 1 << i
			}
		}
		return n
	}
	return cmp.Or(rank(a)-rank(b), a.Addr().Compare(b.Addr())) < 0
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
