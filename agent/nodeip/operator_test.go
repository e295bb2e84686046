package nodeip

import (
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/internal/lists"
)

// randomNode is a node of a cluster, as seen by the operator and by vipgen.
type randomNode struct {
	host      operatorHost
	cluster   operatorCluster
	hints     operatorHints
	call      operatorCall
	choices   []operatorChoice // possible results of the operator
	multipath bool

	snapshot Snapshot
	spec     *v1alpha1.ClusterConfigSpec
	prefer   Preference
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
		g.n.snapshot.Links = append(g.n.snapshot.Links, Link{Index: i + 2, Name: names[i], Up: !g.chance(8)})
	}
	for _, networks := range [][]string{networks4, networks6} {
		for i := range links {
			for range g.IntN(3) {
				g.address(i+2, netip.MustParsePrefix(pickOne(g, networks)))
			}
		}
	}
	g.n.host.Links, g.n.host.Addresses = g.n.snapshot.Links, g.n.snapshot.Addresses
	g.routes()
	g.call()
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
	name := g.n.snapshot.Links[link-2].Name
	switch {
	case v6 && g.chance(10): // DHCPv6
		a.Prefix = netip.PrefixFrom(a.Prefix.Addr(), 128)
		if g.chance(80) {
			g.route(Route{Link: link, Destination: network, Metric: 100, Advertised: true})
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
	if slices.ContainsFunc(g.n.snapshot.Addresses, func(x Address) bool { return x.Prefix.Addr() == a.Prefix.Addr() }) {
		return
	}
	g.n.snapshot.Addresses = append(g.n.snapshot.Addresses, a)
}

func (g generator) route(r Route) {
	g.n.host.Routes = append(g.n.host.Routes, r)
	g.n.snapshot.Routes = append(g.n.snapshot.Routes, r)
}

// routes adds default routes, IPv4 by metric first.
func (g generator) routes() {
	n := g.n
	has := func(link int, v6 bool) (out []netip.Prefix) {
		for _, a := range n.host.Addresses {
			if a.Link == link && a.Prefix.Addr().Is6() == v6 {
				out = append(out, a.Prefix)
			}
		}
		return out
	}
	up := slices.DeleteFunc(slices.Clone(n.snapshot.Links), func(l Link) bool { return !l.Up })
	var list []Route
	for _, l := range up {
		if own := has(l.Index, false); len(own) > 0 && g.chance(60) {
			gateway := pickOne(g, own).Masked().Addr().Next()
			list = append(list, Route{Link: l.Index, Destination: netip.MustParsePrefix("0.0.0.0/0"), Gateway: gateway, Metric: 100 + g.IntN(6)})
		}
		if own := has(l.Index, true); len(own) > 0 && g.chance(60) {
			list = append(list, Route{Link: l.Index, Destination: netip.MustParsePrefix("::/0"), Gateway: netip.MustParseAddr("fe80::1"), Metric: 100 + g.IntN(6)})
		}
	}
	slices.SortStableFunc(list, func(a, b Route) int {
		if a.Gateway.Is4() != b.Gateway.Is4() {
			return map[bool]int{true: -1, false: 1}[a.Gateway.Is4()]
		}
		return a.Metric - b.Metric
	})
	if n.multipath = len(list) > 1 && list[0].Gateway.Is4() && list[1].Gateway.Is4() && g.chance(10); n.multipath {
		list[1].Metric = list[0].Metric
		n.snapshot.Routes = append(n.snapshot.Routes, list[:2]...)
		n.host.Routes = append(n.host.Routes, Route{Destination: list[0].Destination, Metric: list[0].Metric})
		list = list[2:]
	}
	for _, r := range list {
		g.route(r)
	}
}

// call adds the hints and the operator's results.
func (g generator) call() {
	n := g.n
	hint := func(percent int) (out []netip.Addr) {
		if g.chance(percent) {
			out = append(out, netip.MustParsePrefix(pickOne(g, slices.Concat(networks4, networks6))).Addr().Next())
		}
		return out
	}
	n.hints = operatorHints{NodeIP: hint(25), Kubelet: hint(15)}
	n.call = n.cluster.Call(n.hints)
	n.choices = n.host.Choices(n.call)
	names := assets.NodeIPHints(len(n.cluster.API) > 0, n.cluster.Release)
	n.prefer.Hints, _ = ReadHints(func(name string) string {
		if !slices.Contains(names, name) {
			return ""
		}
		return lists.Join(map[string][]netip.Addr{"NODEIP_HINT": n.hints.NodeIP, "KUBELET_NODEIP_HINT": n.hints.Kubelet}[name], " ")
	})
}
