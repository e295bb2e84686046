package nodeip

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/assets"
)

// randomNode is a node of a cluster, as seen by the operator and by vipgen.
type randomNode struct {
	host    operatorHost
	cluster operatorCluster
	call    operatorCall
	choices []operatorChoice // possible results of the operator
	spec    *v1alpha1.ClusterConfigSpec
}

// linkNames are typical of nodes; some resemble those of pods or tunnels.
var linkNames = []string{"eth0", "eth1", "ens192", "br-ex", "bond0.7", "br-external", "br-ext", "tun0", "cni-ext", "eth0+1", "docker0", "ovn-k8s-mp0"}

// networks lists the networks of links: public and private ones, some within others.
var networks4 = []string{"192.168.111.0/24", "192.168.112.0/24", "10.1.0.0/16", "10.1.2.0/24", "192.0.2.0/24"}
var networks6 = []string{"2001:db8:1::/64", "fd99:7::/64", "2001:db8:2::/64", "fd00:1::/64"}

type generator struct {
	*rand.Rand
	n    *randomNode
	used map[netip.Addr]bool
}

func (g generator) chance(percent int) bool { return g.IntN(100) < percent }

func pickOne[T any](g generator, list []T) T { return list[g.IntN(len(list))] }

// in returns an unused address of a network.
func (g generator) in(network netip.Prefix) netip.Addr {
	for {
		b := network.Masked().Addr().AsSlice()
		b[len(b)-1] = byte(2 + g.IntN(250))
		a, _ := netip.AddrFromSlice(b)
		if !g.used[a] {
			g.used[a] = true
			return a
		}
	}
}

func newRandomNode(r *rand.Rand) *randomNode {
	g := generator{r, &randomNode{}, map[netip.Addr]bool{}}
	g.makeCluster()
	names := slices.Clone(linkNames)
	g.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	links := 1 + g.IntN(3)
	for i := range links {
		g.n.host.Links = append(g.n.host.Links, Link{Index: i + 2, Name: names[i], Up: !g.chance(8)})
	}
	for _, networks := range [][]string{networks4, networks6} {
		for i := range links {
			for range g.IntN(3) {
				g.address(i+2, netip.MustParsePrefix(pickOne(g, networks)))
			}
		}
	}
	g.routes()
	g.n.call = g.n.cluster.Call()
	g.n.choices = g.n.host.Choices(g.n.call)
	return g.n
}

func (g generator) makeCluster() {
	n := g.n
	n.cluster.Platform = pickOne(g, []string{"baremetal", "baremetal", "vsphere", "openstack", "nutanix", "none"})
	n.cluster.Release = pickOne(g, assets.Releases).Version
	n.spec = &v1alpha1.ClusterConfigSpec{Platform: n.cluster.Platform, LoadBalancer: v1alpha1.LoadBalancerInCluster}
	families := pickOne(g, [][][]string{{networks4}, {networks4}, {networks6}, {networks4, networks6}, {networks6, networks4}})
	n.cluster.IPv6First = families[0][0] == networks6[0]
	api, ingress := v1alpha1.Group{Name: v1alpha1.FirstAPI, Role: v1alpha1.GroupAPI}, v1alpha1.Group{Name: "ingress", Role: v1alpha1.GroupIngress}
	for i, networks := range families {
		if i == 1 && g.chance(20) {
			n.spec.MachineNetworks = append(n.spec.MachineNetworks, netip.MustParsePrefix(networks[0]))
			continue // VIPs of the primary family alone
		}
		network := netip.MustParsePrefix(networks[g.IntN(2)])
		n.spec.MachineNetworks = append(n.spec.MachineNetworks, network)
		api.VIPs = append(api.VIPs, g.in(network))
		if g.chance(10) {
			network = netip.MustParsePrefix(pickOne(g, networks))
		}
		ingress.VIPs = append(ingress.VIPs, g.in(network))
	}
	n.spec.Groups = []v1alpha1.Group{api, ingress}
	if n.cluster.Platform != "none" {
		n.cluster.API, n.cluster.Ingress = api.VIPs, ingress.VIPs
	}
}

// address adds an address to a link, possibly an unusable one.
func (g generator) address(link int, network netip.Prefix) {
	a := Address{Link: link, Prefix: netip.PrefixFrom(g.in(network), network.Bits())}
	v6 := network.Addr().Is6()
	name := g.n.host.Links[link-2].Name
	switch {
	case v6 && g.chance(10): // DHCPv6
		a.Prefix = netip.PrefixFrom(a.Prefix.Addr(), 128)
		if g.chance(80) {
			g.n.host.Routes = append(g.n.host.Routes, Route{Link: link, Destination: network, Metric: 100, Advertised: true})
		}
	case v6 && g.chance(5):
		a.Deprecated = true
	case v6 && g.chance(5):
		a.Tentative = true
	case v6 && g.chance(3):
		a.Prefix = netip.MustParsePrefix("fd69::2/112")
	case !v6 && g.chance(4):
		a.Label = name + ":eip"
	case g.chance(4):
		vip := pickOne(g, VIPs(g.n.spec))
		a.Prefix = netip.PrefixFrom(vip, vip.BitLen())
		if vip.Is6() != v6 {
			return
		}
	}
	if slices.ContainsFunc(g.n.host.Addresses, func(x Address) bool { return x.Prefix.Addr() == a.Prefix.Addr() }) {
		return
	}
	g.n.host.Addresses = append(g.n.host.Addresses, a)
}

// routes adds default routes, of each family by metric.
func (g generator) routes() {
	for _, v6 := range []bool{false, true} {
		var list []Route
		for _, l := range g.n.host.Links {
			own := slices.DeleteFunc(slices.Clone(g.n.host.Addresses), func(a Address) bool { return a.Link != l.Index || a.Prefix.Addr().Is6() != v6 })
			if !l.Up || len(own) == 0 || g.chance(40) {
				continue
			}
			r := Route{Link: l.Index, Destination: netip.MustParsePrefix("::/0"), Gateway: netip.MustParseAddr("fe80::1"), Metric: 100 + g.IntN(6)}
			if !v6 {
				r.Destination, r.Gateway = netip.MustParsePrefix("0.0.0.0/0"), pickOne(g, own).Prefix.Masked().Addr().Next()
			}
			list = append(list, r)
		}
		slices.SortStableFunc(list, func(a, b Route) int { return a.Metric - b.Metric })
		g.n.host.Routes = append(g.n.host.Routes, list...)
	}
}

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
	{"VIPs on none", "the operator does not know VIPs on platform none; their network is the nodes'", func(n *randomNode, c Choice) bool {
		return len(n.cluster.API) == 0 && slices.ContainsFunc(c.Addresses, func(a Chosen) bool { return inNetworkOfAny(a, VIPs(n.spec)) })
	}},
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
// adopted nodes keep, and hints, are in TestPreference, remote workers in TestHardCase09.
func TestOperatorsChoice(t *testing.T) {
	const nodes = 10_000
	r := rand.New(rand.NewPCG(29, 48))
	counts, alike, byChance := map[string]int{}, 0, 0
	for range nodes {
		n := newRandomNode(r)
		c := Choose(n.host.Snapshot, n.spec, Preference{})
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
