package nodeip

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/assets"
)

// exception is a case in which vipgen's choice differs from the operator's, or is one of
// several results that the operator leaves to chance.
type exception struct {
	name, reason string
	applies      func(n *randomNode, c Choice) bool
}

var exceptions = []exception{
	{"tentative addresses", "another host may have the address: vipgen waits for the right one, of either family, the operator only if it is kubelet's IPv6 address", func(n *randomNode, c Choice) bool {
		waits := slices.ContainsFunc(c.Addresses, func(a Chosen) bool { return strings.Contains(a.Why, "the kernel still checks") })
		return waits || anyChosen(n, func(a Address) bool { return a.Tentative }) || len(n.choices) == 0 && slices.ContainsFunc(n.host.Addresses, func(a Address) bool { return a.Tentative })
	}},
	{"a hint of another family", "the operator takes an address in the network of a hint also where the cluster has no addresses of its family", func(n *randomNode, c Choice) bool {
		return matches(n) && slices.ContainsFunc(n.prefer.Hints, func(h netip.Addr) bool {
			return !slices.ContainsFunc(c.Addresses, func(a Chosen) bool { return a.Family == familyOf(h) })
		})
	}},
	{"VIPs on none", "the operator does not know VIPs on platform none; their network is the nodes'", func(n *randomNode, c Choice) bool {
		return len(n.cluster.API) == 0 && slices.ContainsFunc(c.Addresses, func(a Chosen) bool { return inNetworkOfAny(a, VIPs(n.spec)) })
	}},
	{"multipath default routes", "the operator takes a default route with several next hops for none", func(n *randomNode, c Choice) bool { return n.multipath && !matches(n) }},
	{"the second family's VIP", "the second family has VIPs of its own: their network, on whatever interface, else its own default route, where the operator takes what the interface of the first has, or nothing", func(n *randomNode, c Choice) bool {
		return len(c.Addresses) == 2 && matches(n)
	}},
	{"overlapping networks", "of two addresses of one interface that the VIPs' networks hold, the one in the narrowest, in which keepalived binds the VIP, where the operator takes the first", func(n *randomNode, c Choice) bool {
		return matches(n) && slices.ContainsFunc(c.Addresses, func(a Chosen) bool { return inNetworkOfAny(a, n.call.Wanted) })
	}},
	{"egress IPs and fd69::2 on old releases", "up to 4.14 the operator takes egress IPs of OpenShift SDN, up to 4.12 fd69::2 of OVN-Kubernetes, and always in a VIP's network: others have them too", func(n *randomNode, c Choice) bool {
		return anyChosen(n, func(a Address) bool {
			return a.Label != "" || a.Prefix.Addr() == netip.MustParseAddr("fd69::2")
		})
	}},
	{"a VIP on the default route", "the operator takes a VIP that is on the node for its address where it goes by default routes", func(n *randomNode, c Choice) bool {
		return anyChosen(n, func(a Address) bool { return slices.Contains(VIPs(n.spec), a.Prefix.Addr()) })
	}},
	{"family by family", "IPv4 and IPv6 may leave by different interfaces (hard case 11); the operator goes by the metric of the first route of an interface, which is that of IPv4", func(n *randomNode, c Choice) bool {
		return len(n.choices) > 0 && !matches(n) && slices.ContainsFunc(n.host.Routes, func(r Route) bool { return r.Destination.Bits() == 0 && r.Gateway.Is6() })
	}},
	{"several alike before 4.21", "of addresses that are alike vipgen takes the lowest on every release, as the operator from 4.21 on; before, it went by the kernel's order", func(n *randomNode, c Choice) bool {
		return len(n.choices) > 0 && !matches(n) && !assets.AtLeast(n.cluster.Release, "4.21")
	}},
	{"a machine network", "where a family has neither the network of a VIP nor a default route, the operator waits, or goes without the second one; an address in a machine network lets kubelet start", func(n *randomNode, c Choice) bool {
		return len(n.choices) == 0 || slices.ContainsFunc(c.Addresses, func(a Chosen) bool { return strings.HasPrefix(a.Why, "in machine network") })
	}},
}

// matches reports whether the operator chooses by networks.
func matches(n *randomNode) bool { return len(n.choices) > 0 && n.choices[0].Matches }

func inNetworkOfAny(c Chosen, list []netip.Addr) bool {
	return c.Found() && slices.ContainsFunc(list, c.Address.Contains)
}

// anyChosen reports whether the operator may choose an address of a kind.
func anyChosen(n *randomNode, is func(Address) bool) bool {
	return slices.ContainsFunc(n.choices, func(o operatorChoice) bool {
		return slices.ContainsFunc(n.host.Addresses, func(a Address) bool {
			return is(a) && slices.Contains(o.Addresses, a.Prefix.Addr())
		})
	})
}

// inFamily returns the address of a family in a list.
func inFamily(f Family, list []netip.Addr) netip.Addr {
	if i := slices.IndexFunc(list, func(a netip.Addr) bool { return familyOf(a) == f }); i >= 0 {
		return list[i]
	}
	return netip.Addr{}
}

// same reports whether the operator may make the same choice, in the families of the cluster.
func same(n *randomNode, c Choice) bool {
	if len(n.choices) == 0 {
		return !c.Addresses[0].Found()
	}
	return slices.ContainsFunc(n.choices, func(o operatorChoice) bool {
		return !slices.ContainsFunc(c.Addresses, func(a Chosen) bool { return a.Address.Addr() != inFamily(a.Family, o.Addresses) })
	})
}

// The choice for a new node is one of the operator's possible results, or has a reason. What
// adopted nodes keep is in TestPreference, which nodes are remote workers in TestHardCase09.
func TestOperatorsChoice(t *testing.T) {
	const nodes = 10_000
	r := rand.New(rand.NewPCG(29, 48))
	counts, alike, byChance := map[string]int{}, 0, 0
	for range nodes {
		n := newRandomNode(r)
		c := Choose(n.snapshot, n.spec, n.prefer)
		switch i := slices.IndexFunc(exceptions, func(e exception) bool { return e.applies(n, c) }); {
		case same(n, c):
			alike++
			if len(n.choices) > 1 {
				byChance++
			}
		case i >= 0:
			counts[exceptions[i].name]++
		default:
			t.Fatalf("no reason: chose %s\n%+v", picked(c), *n)
		}
	}
	for _, e := range exceptions {
		if t.Logf("%d: %s: %s", counts[e.name], e.name, e.reason); counts[e.name] == 0 {
			t.Errorf("%s: no node", e.name)
		}
	}
	t.Logf("%d nodes like the operator's, %d of them random there", alike, byChance)
	if byChance == 0 || alike < nodes/2 {
		t.Error("too few are alike")
	}
}
