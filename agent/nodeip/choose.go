package nodeip

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
)

// Family is an address family.
type Family string

// The families, in Kubernetes' spelling.
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

// Choice is the choice of the node's addresses.
type Choice struct {
	// Addresses has one entry for every family of the cluster, the primary first.
	Addresses []Chosen `json:"addresses"`
	// RemoteWorker reports that the node is in none of the VIPs' networks (hard case 9):
	// it takes no part in elections.
	RemoteWorker bool `json:"remoteWorker"`
	// Interfaces are the interfaces that daemons can be configured with, with the node's
	// own addresses (no VIPs) and their networks.
	Interfaces []v1alpha1.Interface `json:"interfaces,omitempty"`
	// Unconfigured are usable addresses on interfaces that are not in Interfaces.
	Unconfigured []Rejected `json:"unconfigured,omitempty"`
	// Rejected are all other addresses, except loopback ones.
	Rejected []Rejected `json:"rejected,omitempty"`
}

// LeftOut returns the unused addresses to log: Unconfigured, and Rejected except
// link-local ones, which every interface has.
func (c Choice) LeftOut() []Rejected {
	return append(slices.DeleteFunc(slices.Clone(c.Rejected), func(r Rejected) bool {
		return r.Address.IsLinkLocalUnicast()
	}), c.Unconfigured...)
}

// Chosen is the node's address of one family.
type Chosen struct {
	Family Family `json:"family"`
	// Address is the address with its prefix length; the zero value for none.
	Address netip.Prefix `json:"address,omitzero"`
	// Interface is the interface with the address.
	Interface string `json:"interface,omitempty"`
	// Why is the reason for the choice, or for a missing address.
	Why string `json:"why"`
}

// Found reports whether there is an address.
func (c Chosen) Found() bool { return c.Address.IsValid() }

// IPs returns the chosen addresses, primary family first; none while the primary one is
// missing, which a node cannot do without.
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

// Own returns all of the node's own addresses.
func (c Choice) Own() []netip.Addr { return v1alpha1.OwnAddresses(c.Interfaces) }

// VIPs returns the VIPs of all groups, in order.
func VIPs(spec *v1alpha1.ClusterConfigSpec) []netip.Addr {
	return lists.FlatMap(spec.Groups, func(g v1alpha1.Group) []netip.Addr { return g.VIPs })
}

// nodeVIPs returns the VIPs in the nodes' own networks. Additional API VIPs may be in
// other networks, for clients there.
func nodeVIPs(spec *v1alpha1.ClusterConfigSpec) []netip.Addr {
	var out []netip.Addr
	for _, g := range spec.Groups {
		if !g.AdditionalAPI() {
			out = append(out, g.VIPs...)
		}
	}
	return out
}

// Choose chooses an address for each family of the cluster. The first of these wins:
//   - the address chosen before, or the one of its Node
//   - the address in the narrowest network with a VIP, or with a hint; hints come first on
//     platforms whose operator has no VIPs
//   - an address on the interface of the other family, found in the same way
//   - the address of the default route with the lowest metric (hard case 11)
//   - an address in a network of the nodes
//
// Interfaces that are up come before others. A tentative address is waited for: the family
// has none.
func Choose(s Snapshot, spec *v1alpha1.ClusterConfigSpec, p Preference) Choice {
	vips := VIPs(spec)
	found := newSurvey(s, vips, Link.unfit, Snapshot.listed)
	configured := newSurvey(s, vips, Link.unconfigured, Snapshot.on)
	c := Choice{Interfaces: configured.usable()}
	c.Rejected = lists.Filter(found.rejected, func(r Rejected) bool { return !r.Address.IsLoopback() })
	c.Unconfigured = lists.Filter(configured.rejected, func(r Rejected) bool {
		return !slices.ContainsFunc(found.rejected, func(f Rejected) bool { return f.Interface == r.Interface && f.Address == r.Address })
	})
	c.Addresses = lists.Map(families(spec), func(f Family) Chosen { return found.pick(f, spec, p) })
	c.RemoteWorker = found.isRemote(spec, p.Hints)
	return c
}

// families returns the families of the cluster, primary first: those of the machine
// networks, or of the VIPs without any (hard case 44).
func families(spec *v1alpha1.ClusterConfigSpec) []Family {
	out := lists.Map(spec.MachineNetworks, func(n netip.Prefix) Family { return familyOf(n.Addr()) })
	if len(out) == 0 || spec.LoadBalancer != v1alpha1.LoadBalancerExternal {
		out = append(out, lists.Map(nodeVIPs(spec), familyOf)...)
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
		c = Chosen{Family: f, Why: fmt.Sprintf("the kernel still checks whether another host has %s (%s)", c.Address.Addr(), c.Interface)}
	}
	return c
}

// anew chooses the address of a node that has none yet.
func (s survey) anew(f Family, spec *v1alpha1.ClusterConfigSpec, hints []netip.Addr) Chosen {
	c := s.wanted(f, spec, hints)
	if !c.Found() {
		c = s.nextTo(s.wanted(other(f), spec, hints), f)
	}
	if !c.Found() {
		c = s.onDefaultRoute(f)
	}
	if !c.Found() {
		c = s.inNodeNetwork(f, spec)
	}
	return c
}

// wanted returns the address in the network of a VIP or a hint. The operator treats both
// alike (AddressesRouting) and takes any of them; here the network of the VIPs comes
// first, because the operator's keepalived puts the VIPs on the interface of this
// address. On platforms where the operator has no VIPs, it uses hints only.
func (s survey) wanted(f Family, spec *v1alpha1.ClusterConfigSpec, hints []netip.Addr) Chosen {
	find := []func(survey) Chosen{
		func(s survey) Chosen { return s.inNetworks("VIP", f, nodeVIPs(spec)) },
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

// inNetworks returns the address in the network of the first listed address that has one.
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

// inNetworkOf returns the address in the narrowest network with another address. It uses
// v1alpha1.Node.Bind, so that the node address is the source of keepalived's adverts.
func (s survey) inNetworkOf(a netip.Addr) Chosen {
	node := v1alpha1.Node{Interfaces: s.interfaces}
	if b, ok := node.Bind(a); ok && b.Source.Contains(a) {
		return Chosen{Address: b.Source, Interface: b.Interface}
	}
	return Chosen{}
}

// nextTo returns the first address of a family on the interface of a choice of the other
// family.
func (s survey) nextTo(c Chosen, f Family) Chosen {
	why := "on the interface with the " + string(other(f)) + " address " + c.Why
	return s.first(f, why, func(link string, _ netip.Addr) bool { return link == c.Interface })
}

// first returns the first wanted address of a family.
func (s survey) first(f Family, why string, wanted func(link string, a netip.Addr) bool) Chosen {
	for _, i := range s.interfaces {
		for _, a := range i.Addresses {
			if familyOf(a.Addr()) == f && wanted(i.Name, a.Addr()) {
				return Chosen{Address: a, Interface: i.Name, Why: why}
			}
		}
	}
	return Chosen{}
}

// onDefaultRoute returns an address of the interface with the default route of the
// family, else of the other family, because the operator's AddressesDefault takes any.
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

// ahead reports whether an address on the default route's interface is preferred to
// another: in the router's network, then public, then lower, like the operator's
// AddressesDefault from 4.21 on. Tentative addresses come last.
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
		if c := s.first(f, "in machine network "+n.String(), func(_ string, a netip.Addr) bool { return n.Contains(a) }); c.Found() {
			return c
		}
	}
	return Chosen{}
}
