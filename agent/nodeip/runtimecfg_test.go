package nodeip

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/assets"
)

// This file models the decisions of the operator's own node-ip. It is written from the rules,
// naming the functions of baremetal-runtimecfg that implement them, not from their code.
// Arguments and hints of units are those of templates/common/on-prem and templates/common/_base
// of the machine-config-operator.

// operatorHost is the network configuration of a node in the kernel's order, IPv4 routes first.
// The operator does not check whether links are up.
type operatorHost struct{ Snapshot }

// operatorCluster holds the facts that the units of node-ip are rendered from.
type operatorCluster struct {
	Platform, Release string
	API, Ingress      []netip.Addr
	IPv6First         bool // IPFamilies IPv6 or DualStackIPv6Primary
}

// operatorCall is a unit's invocation of node-ip.
type operatorCall struct {
	// Wanted are its arguments: addresses in the networks to choose from.
	Wanted     []netip.Addr
	PreferIPv6 bool
	Release    string
}

// Call returns how the unit of the cluster runs node-ip without hints: that of platforms with VIPs
// (on-prem), or the base one.
func (c operatorCluster) Call() operatorCall {
	call := operatorCall{PreferIPv6: c.IPv6First, Release: c.Release}
	if !c.onPrem() {
		return call
	}
	call.Wanted = append(call.Wanted, c.API...)
	if assets.AtLeast(c.Release, "4.13") {
		call.Wanted = append(call.Wanted, c.Ingress...)
	} else {
		call.PreferIPv6 = false
	}
	return call
}

func (c operatorCluster) onPrem() bool {
	return len(c.API) > 0 && c.Platform != "none" && c.Platform != "external"
}

// operatorChoice is a possible result of node-ip.
type operatorChoice struct {
	// Addresses lists the node's addresses, at most one of each family, the first for kubelet.
	Addresses []netip.Addr
	// Matches is set if one of them is in a wanted network.
	Matches bool
}

// Choices returns all possible results of node-ip (getSuitableIPs): where several links have an
// address in a wanted network, the result is random, since it iterates over a Go map. It is
// empty while node-ip retries. A choice whose first address is tentative is retried as well
// (checkAddressUsable), and left out.
func (h operatorHost) Choices(c operatorCall) (out []operatorChoice) {
	if len(c.Wanted) > 0 {
		if out = h.routing(c); len(out) > 0 {
			return h.usable(out)
		}
	}
	if all := h.byDefault(c); len(all) > 0 {
		return h.usable([]operatorChoice{{Addresses: all}})
	}
	return nil
}

func (h operatorHost) usable(list []operatorChoice) []operatorChoice {
	return slices.DeleteFunc(list, func(c operatorChoice) bool {
		return slices.ContainsFunc(h.Addresses, func(a Address) bool {
			return a.Tentative && a.Prefix.Addr() == c.Addresses[0] && a.Prefix.Addr().Is6()
		})
	})
}

// on returns the addresses of a link that can be a node's (ValidNodeAddress).
func (h operatorHost) on(l Link, release string) (out []Address) {
	for _, a := range h.Addresses {
		egress := strings.Contains(a.Label, "eip") && assets.AtLeast(release, "4.15")
		if a.Link == l.Index && !a.Prefix.Addr().IsLinkLocalUnicast() && !(a.Deprecated && a.Prefix.Addr().Is6()) && !egress {
			out = append(out, a)
		}
	}
	return out
}

// routing returns, for each link, the first address in a wanted network, with the first of the
// other family on that link (AddressesRouting).
func (h operatorHost) routing(c operatorCall) (out []operatorChoice) {
	for _, l := range h.Links {
		all := h.on(l, c.Release)
		match := slices.IndexFunc(all, func(a Address) bool { return h.inWanted(a, c.Wanted) })
		if match < 0 {
			continue
		}
		found := []netip.Addr{all[match].Prefix.Addr()}
		if i := slices.IndexFunc(all, func(a Address) bool { return a.Prefix.Addr().Is4() != found[0].Is4() }); i >= 0 {
			found = append(found, all[i].Prefix.Addr())
		}
		// Up to 4.12 they keep this order.
		if assets.AtLeast(c.Release, "4.13") {
			slices.SortStableFunc(found, func(a, b netip.Addr) int { return ahead(b.Is6() == c.PreferIPv6, a.Is6() == c.PreferIPv6) })
		}
		out = append(out, operatorChoice{Addresses: found, Matches: true})
	}
	return out
}

// inWanted reports whether an address is in the network of a wanted one, and is none of these.
// The network of an IPv6 address of /128 has the length of any network that a router advertised
// on the link (usableIPv6Route).
func (h operatorHost) inWanted(a Address, wanted []netip.Addr) bool {
	if slices.Contains(wanted, a.Prefix.Addr()) {
		return false
	}
	if !a.Prefix.Addr().Is6() || !a.Prefix.IsSingleIP() {
		return slices.ContainsFunc(wanted, a.Prefix.Contains)
	}
	return slices.ContainsFunc(h.Routes, func(r Route) bool {
		network := netip.PrefixFrom(a.Prefix.Addr(), r.Destination.Bits())
		return r.Link == a.Link && r.Advertised && r.Destination.Addr().Is6() && r.Destination.Bits() > 0 && slices.ContainsFunc(wanted, network.Contains)
	})
}

// byDefault returns the first address of each family on links with a default route
// (AddressesDefault): by the metric of the link's first default route, whatever its family, by
// link, by family, in the network of that route's router, public, by address. Up to 4.20 equal
// ones are in the kernel's order if they are private, in the reverse order if they are public.
func (h operatorHost) byDefault(c operatorCall) []netip.Addr {
	type found struct {
		a       netip.Addr
		link    int
		metric  int
		gateway bool
		place   int
	}
	var all []found
	for _, l := range h.Links {
		first := slices.IndexFunc(h.Routes, func(r Route) bool { return r.Link == l.Index && r.Destination.Bits() == 0 })
		if first < 0 {
			continue
		}
		r := h.Routes[first]
		for place, a := range h.on(l, c.Release) {
			if a.Prefix.Addr() == netip.MustParseAddr("fd69::2") && assets.AtLeast(c.Release, "4.13") {
				continue // ValidOVNNodeAddress
			}
			if !a.Prefix.Addr().IsPrivate() && !assets.AtLeast(c.Release, "4.21") {
				place = -place
			}
			all = append(all, found{a.Prefix.Addr(), l.Index, r.Metric, r.Gateway.IsValid() && a.Prefix.Contains(r.Gateway), place})
		}
	}
	slices.SortFunc(all, func(a, b found) int {
		order := cmp.Or(a.metric-b.metric, a.link-b.link, ahead(b.a.Is6() == c.PreferIPv6, a.a.Is6() == c.PreferIPv6),
			ahead(b.gateway, a.gateway), ahead(a.a.IsPrivate(), b.a.IsPrivate()))
		if assets.AtLeast(c.Release, "4.21") {
			return cmp.Or(order, a.a.Compare(b.a))
		}
		return cmp.Or(order, a.place-b.place)
	})
	var out []netip.Addr
	for _, f := range all {
		if !slices.ContainsFunc(out, func(a netip.Addr) bool { return a.Is4() == f.a.Is4() }) {
			out = append(out, f.a)
		}
	}
	return out
}

// ahead compares two conditions: false comes first.
func ahead(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
