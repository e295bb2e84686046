package keepalived

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/vrrp"
)

var (
	fast    = v1alpha1.VRRPSettings{Profile: v1alpha1.ProfileFast, Mode: v1alpha1.ModeUnicast, Version: 3, AdvertIntervalMS: 100}
	classic = v1alpha1.ClassicSettings(v1alpha1.ModeUnicast)
)

// sameTerm compares terms by their names, which are unique in a group.
var sameTerm = cmp.Comparer(func(a, b vrrp.Term) bool { return a.Name == b.Name })

// cluster has an API and an ingress group in both families.
func cluster(change func(*v1alpha1.ClusterConfigSpec)) *v1alpha1.ClusterConfig {
	c := &v1alpha1.ClusterConfig{Metadata: v1alpha1.ClusterMetadata{Name: "demo"}}
	c.Spec = v1alpha1.ClusterConfigSpec{
		Domain:       "demo.example.com",
		ControlPlane: v1alpha1.ControlPlane{Replicas: 3},
		LoadBalancer: v1alpha1.LoadBalancerInCluster,
		VRRP:         v1alpha1.ClusterVRRP{Target: fast},
		Groups: []v1alpha1.Group{
			{Name: "api", Role: v1alpha1.GroupAPI, VIPs: testkit.Addrs("192.0.2.2", "2001:db8::2"), Instance: "demo_API", VirtualRouterID: 10, Password: "demo_api"},
			{Name: "ingress", Role: v1alpha1.GroupIngress, VIPs: testkit.Addrs("192.0.2.3", "2001:db8::3"), Instance: "demo_INGRESS", VirtualRouterID: 11, Password: "demo_ing",
				NodeSelector: map[string]string{"node-role.kubernetes.io/worker": ""}},
		},
		Ports: v1alpha1.DefaultPorts,
	}
	if change != nil {
		change(&c.Spec)
	}
	return c
}

// node has the address number n in both families, with the given peers as
// "role:number".
func node(role string, n int, peers ...string) *v1alpha1.Node {
	out := &v1alpha1.Node{Name: fmt.Sprintf("%s-%d", role, n), Role: role, Interfaces: []v1alpha1.Interface{{
		Name: "br-ex", DefaultRoute4: true, DefaultRoute6: true,
		Addresses: []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("192.0.2.%d/24", n)), netip.MustParsePrefix(fmt.Sprintf("2001:db8::%d/64", n))},
	}}}
	for _, p := range peers {
		role, number, _ := strings.Cut(p, ":")
		out.Peers = append(out.Peers, v1alpha1.Peer{Name: role + "-" + number, Role: role, Addresses: testkit.Addrs("192.0.2."+number, "2001:db8::"+number)})
	}
	return out
}

func instances(k *Conf) []string {
	var out []string
	for _, i := range k.Instances {
		out = append(out, i.Name)
	}
	return out
}

func TestParticipation(t *testing.T) {
	both := []string{"demo_API_0", "demo_API_1"}
	ingress := []string{"demo_INGRESS_0", "demo_INGRESS_1"}
	gone := func(n *v1alpha1.Node) { n.BootstrapGone = true }
	for _, tt := range []struct {
		name    string
		cluster func(*v1alpha1.ClusterConfigSpec)
		node    *v1alpha1.Node
		change  func(*v1alpha1.Node)
		want    []string
		leftOut []string
	}{
		{name: "control plane", node: node("master", 10, "master:11", "master:12"), want: both},
		{name: "control plane, schedulable", cluster: func(s *v1alpha1.ClusterConfigSpec) { s.ControlPlane.Schedulable = true }, node: node("master", 10, "master:11"), want: append(slices.Clone(both), ingress...)},
		{name: "worker", node: node("worker", 20, "worker:21"), want: ingress},
		{name: "worker alone", node: node("worker", 20), want: ingress},
		{name: "bootstrap alone (hard case 2)", node: node("bootstrap", 9), want: both},
		{name: "bootstrap, not in the list of nodes", node: node("bootstrap", 9), change: func(n *v1alpha1.Node) { n.Unregistered = true }, want: both},
		{name: "no peers (hard case 2)", node: node("master", 10), leftOut: []string{"api: no other control-plane node is known"}},
		{name: "no peers but workers (hard case 2)", node: node("master", 10, "worker:20"), leftOut: []string{"api: no other control-plane node is known"}},
		{name: "no peers, bootstrap gone, three nodes (hard case 2)", node: node("master", 10), change: gone, leftOut: []string{"api: no other control-plane node is known"}},
		{name: "only itself in the list", node: node("master", 10, "master:10"), leftOut: []string{"api: no other control-plane node is known"}},
		{name: "the bootstrap as the only peer", node: node("master", 10, "bootstrap:9"), want: both},
		{name: "the bootstrap as the only peer, gone", node: node("master", 10, "bootstrap:9"), change: gone, leftOut: []string{"api: no other control-plane node is known"}},
		{name: "not registered (hard case 3)", node: node("master", 10, "master:11"), change: func(n *v1alpha1.Node) { n.Unregistered = true }, leftOut: []string{"api: this node is not registered with the cluster"}},
		{name: "worker, not registered (hard case 3)", node: node("worker", 20, "worker:21"), change: func(n *v1alpha1.Node) { n.Unregistered = true }, leftOut: []string{"ingress: this node is not registered with the cluster"}},
		{name: "single node", cluster: func(s *v1alpha1.ClusterConfigSpec) {
			s.ControlPlane = v1alpha1.ControlPlane{Replicas: 1, Schedulable: true}
		}, node: node("master", 10), want: append(slices.Clone(both), ingress...)},
		{name: "one of two, bootstrap there (hard case 13)", cluster: func(s *v1alpha1.ClusterConfigSpec) { s.ControlPlane.Replicas = 2 }, node: node("master", 10), leftOut: []string{"api: no other control-plane node is known"}},
		{name: "one of two, bootstrap gone (hard case 13)", cluster: func(s *v1alpha1.ClusterConfigSpec) { s.ControlPlane.Replicas = 2 }, node: node("master", 10), change: gone, want: both},
		{name: "one of two with an arbiter", cluster: func(s *v1alpha1.ClusterConfigSpec) { s.ControlPlane.Replicas = 2 }, node: node("master", 10, "arbiter:12"), want: both},
		{name: "arbiter", cluster: func(s *v1alpha1.ClusterConfigSpec) { s.ControlPlane.Replicas = 2 }, node: node("arbiter", 12, "master:10"), want: both},
		{name: "one family only", node: node("master", 10, "master:11"), change: func(n *v1alpha1.Node) { n.Interfaces[0].Addresses = n.Interfaces[0].Addresses[:1] }, want: both[:1],
			leftOut: []string{"api: no address of the family of 2001:db8::2 on this node"}},
		{name: "no address", node: node("master", 10, "master:11"), change: func(n *v1alpha1.Node) { n.Interfaces = nil },
			leftOut: []string{"api: no address of the family of 192.0.2.2 on this node", "api: no address of the family of 2001:db8::2 on this node"}},
		{name: "external load balancer", cluster: func(s *v1alpha1.ClusterConfigSpec) { s.LoadBalancer = v1alpha1.LoadBalancerExternal }, node: node("master", 10, "master:11"), leftOut: []string{"the nodes hold no VIPs: the load balancer is External"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.change != nil {
				tt.change(tt.node)
			}
			k := New(cluster(tt.cluster), tt.node)
			testkit.Equal(t, tt.want, instances(k))
			testkit.Equal(t, tt.leftOut, k.Idle)
			if text, err := Render(Template, cluster(tt.cluster), tt.node); err != nil || strings.Count(string(text), "vrrp_instance") != len(tt.want) {
				t.Errorf("%v\n%s", err, text)
			}
		})
	}
}

// A pool of 2,000 in unicast mode: the holder's packets and the configuration that every node
// reads are bounded (hard case 26).
func TestManyWorkers(t *testing.T) {
	n := node("worker", 1)
	n.Interfaces[0].Addresses = []netip.Prefix{netip.MustParsePrefix("10.0.0.1/16"), netip.MustParsePrefix("2001:db8::1/64")}
	four, six := netip.MustParseAddr("10.0.1.0"), netip.MustParseAddr("2001:db8::1:0")
	for i := range 2000 {
		n.Peers = append(n.Peers, v1alpha1.Peer{Name: fmt.Sprintf("compute-%d", i), Role: "worker", Addresses: []netip.Addr{four, six}})
		four, six = four.Next(), six.Next()
	}
	for _, settings := range []v1alpha1.VRRPSettings{fast, classic} {
		n.VRRP = &settings
		c := cluster(func(s *v1alpha1.ClusterConfigSpec) {
			s.Groups[1].VIPs = testkit.Addrs("10.0.0.3", "2001:db8::3")
		})
		rate := 0.0
		for _, i := range New(c, n).Instances {
			var interval float64
			if _, err := fmt.Sscan(i.AdvertInterval, &interval); err != nil {
				t.Fatal(err)
			}
			testkit.Equal(testkit.In(t, i.Name), 2000, len(i.Peers))
			rate += float64(len(i.Peers)) / interval
		}
		if rate > vrrp.MaxAdvertsPerSecond {
			t.Errorf("%s: %.0f adverts a second", settings.Profile, rate)
		}
		text, err := Render(Template, c, n)
		testkit.Must(t, err)
		if len(text) > 200<<10 {
			t.Errorf("%s: %d bytes of configuration", settings.Profile, len(text))
		}
	}
}

// Both families on one Neutron port move together, with the checks on the group (hard case 14).
func TestSyncGroups(t *testing.T) {
	together := func(s *v1alpha1.ClusterConfigSpec) {
		for i := range s.Groups {
			s.Groups[i].Together = true
		}
	}
	k := New(cluster(together), node("master", 10, "master:11"))
	_, terms := vrrp.PriorityTerms(&v1alpha1.Group{Role: v1alpha1.GroupAPI}, "master")
	want := []SyncGroup{{Name: "demo_API", Members: []string{"demo_API_0", "demo_API_1"}, Terms: terms}}
	testkit.Equal(t, want, k.SyncGroups, sameTerm)
	for _, i := range k.Instances {
		testkit.Empty(testkit.In(t, i.Name), i.Terms)
	}
	single := node("master", 10, "master:11")
	single.Interfaces[0].Addresses = single.Interfaces[0].Addresses[:1]
	if k := New(cluster(together), single); len(k.Instances) > 0 || len(k.Idle) != 1 {
		t.Errorf("a node with one family takes part: %+v", k)
	}
	for name, c := range map[string]*v1alpha1.ClusterConfig{
		"apart": cluster(nil),
		"one family": cluster(func(s *v1alpha1.ClusterConfigSpec) {
			together(s)
			s.Groups[0].VIPs = s.Groups[0].VIPs[:1]
		}),
	} {
		k := New(c, node("master", 10, "master:11"))
		if len(k.SyncGroups) > 0 || len(k.Instances) == 0 || len(k.Instances[0].Terms) == 0 {
			t.Errorf("%s: %+v", name, k)
		}
	}
}

// Additional API VIPs are a separate group next to the first, with its own terms. The bootstrap
// host takes no part in it, and does not count as its peer (hard case 2).
func TestMoreAPIVIPs(t *testing.T) {
	c := cluster(func(s *v1alpha1.ClusterConfigSpec) {
		s.Groups = append(s.Groups, v1alpha1.Group{Name: "api-mgmt", Role: v1alpha1.GroupAPI, VIPs: testkit.Addrs("192.0.2.17"), Instance: "demo_API_mgmt", VirtualRouterID: 17})
	})
	k := New(c, node("master", 10, "master:11", "bootstrap:9"))
	testkit.Equal(t, []string{"demo_API_0", "demo_API_1", "demo_API_mgmt_0"}, instances(k))
	testkit.Equal(t, testkit.Addrs("192.0.2.11"), k.Instances[2].Peers)
	testkit.Equal(t, 6, len(k.TrackFiles))
	testkit.Equal(t, []string{"demo_API_0", "demo_API_1"}, instances(New(c, node("bootstrap", 9, "master:10"))))
	k = New(c, node("master", 10, "bootstrap:9"))
	if got := instances(k); !slices.Equal(got, []string{"demo_API_0", "demo_API_1"}) || !slices.Equal(k.Idle, []string{"api-mgmt: no other control-plane node is known"}) {
		t.Errorf("with the bootstrap host as the only other: %v, left out %q", got, k.Idle)
	}
}

// A VIP may be in another network than the first ones, where nodes have an interface. A node
// takes no part if no peer would receive its advertisements there.
func TestVIPInAnotherNetwork(t *testing.T) {
	const here, elsewhere = "198.51.100.10/24", "198.51.100.11"
	const stranger, unknown = "other nodes have addresses in the network of 198.51.100.17, and this node has none", "no other node's address in the network of 198.51.100.17 is known"
	for name, tt := range map[string]struct {
		own, peer string // addresses there
		change    func(*v1alpha1.ClusterConfigSpec)
		node      *v1alpha1.Node
		link, why string
		peers     []netip.Addr
	}{
		"all have addresses there":      {own: here, peer: elsewhere, link: "ens4", peers: testkit.Addrs(elsewhere)},
		"this node has none":            {peer: elsewhere, why: stranger},
		"none of the others is known":   {own: here, why: unknown},
		"nobody has any (hard case 11)": {link: "br-ex", peers: testkit.Addrs("192.0.2.11")},
		"multicast asks for no addresses": {own: here, link: "ens4",
			change: func(s *v1alpha1.ClusterConfigSpec) { s.VRRP.Target.Mode = v1alpha1.ModeMulticast }},
		"multicast, and this node has none": {peer: elsewhere, why: stranger,
			change: func(s *v1alpha1.ClusterConfigSpec) { s.VRRP.Target.Mode = v1alpha1.ModeMulticast }},
		"one of the others has none": {own: here, peer: elsewhere, node: node("master", 10, "master:11", "master:12"), link: "ens4", peers: testkit.Addrs(elsewhere)},
		"a node alone": {own: here, node: node("master", 10), link: "ens4",
			change: func(s *v1alpha1.ClusterConfigSpec) { s.ControlPlane.Replicas = 1 }},
		"those that move together stay out together": {own: here, why: unknown, change: func(s *v1alpha1.ClusterConfigSpec) {
			s.Groups[2].VIPs, s.Groups[2].Together = testkit.Addrs("198.51.100.17", "2001:db8::17"), true
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(func(s *v1alpha1.ClusterConfigSpec) {
				s.MachineNetworks = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/64"), netip.MustParsePrefix("198.51.100.0/24")}
				s.Groups = append(s.Groups, v1alpha1.Group{Name: "api-mgmt", Role: v1alpha1.GroupAPI, VIPs: testkit.Addrs("198.51.100.17"), Instance: "demo_API_mgmt", VirtualRouterID: 17})
				if tt.change != nil {
					tt.change(s)
				}
			})
			n := tt.node
			if n == nil {
				n = node("master", 10, "master:11")
			}
			if tt.own != "" {
				n.Interfaces = append(n.Interfaces, v1alpha1.Interface{Name: "ens4", Addresses: []netip.Prefix{netip.MustParsePrefix(tt.own)}})
			}
			if tt.peer != "" {
				n.Peers[0].Elsewhere = testkit.Addrs(tt.peer)
			}
			k := New(c, n)
			if tt.why != "" {
				if !slices.Equal(k.Idle, []string{"api-mgmt: " + tt.why}) || len(k.Instances) != 2 {
					t.Errorf("%v, left out %q", instances(k), k.Idle)
				}
				return
			}
			last := k.Instances[len(k.Instances)-1]
			if len(k.Idle) > 0 || last.Name != "demo_API_mgmt_0" || last.Interface != tt.link || !slices.Equal(last.Peers, tt.peers) {
				t.Errorf("%+v, left out %q", last, k.Idle)
			}
		})
	}
}

// A node outside of the network of the control plane and the VIP takes no part.
func TestHardCase39RemoteWorkers(t *testing.T) {
	c := cluster(func(s *v1alpha1.ClusterConfigSpec) {
		s.MachineNetworks = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	})
	n := node("worker", 10, "master:11", "worker:12")
	n.Interfaces = []v1alpha1.Interface{{Name: "ens3", Addresses: []netip.Prefix{netip.MustParsePrefix("203.0.113.10/24")}, DefaultRoute4: true}}
	testkit.Empty(t, New(c, n).Instances)
}

// The addresses that a worker reports displace no other node from an ingress VIP in its own
// network, and no node holds the VIP with this worker as its only peer.
func TestHardCase39WorkerClaimsAnAddress(t *testing.T) {
	const claimed, here = "198.51.100.66", "198.51.100.10/24"
	none, unheard := "this node has no address in the network of 198.51.100.17", "the other nodes do not know this node's address in the network of 198.51.100.17"
	for name, tt := range map[string]struct {
		networks []string
		own      string // this node's address there
		listed   []netip.Addr
		want     []netip.Addr // peers; nil for out
		why      string
	}{
		"nobody has one (hard case 11)":        {networks: []string{"192.0.2.0/24"}, want: testkit.Addrs("192.0.2.11", "192.0.2.12")},
		"in the only network either":           {networks: []string{"198.51.100.0/24"}, want: testkit.Addrs("192.0.2.11", "192.0.2.12")},
		"the network is one of the cluster's":  {why: none},
		"the honest ones have and publish one": {own: here, listed: testkit.Addrs("192.0.2.10", "198.51.100.10"), want: testkit.Addrs("198.51.100.11")},
		"they have one and do not publish it":  {own: here, listed: testkit.Addrs("192.0.2.10"), why: unheard},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(func(s *v1alpha1.ClusterConfigSpec) {
				networks := tt.networks
				if networks == nil {
					networks = []string{"192.0.2.0/24", "198.51.100.0/24"}
				}
				s.MachineNetworks = nil
				for _, n := range networks {
					s.MachineNetworks = append(s.MachineNetworks, netip.MustParsePrefix(n))
				}
				s.Groups = append(s.Groups, v1alpha1.Group{Name: "ingress-shard", Role: v1alpha1.GroupIngress, VIPs: testkit.Addrs("198.51.100.17"), Instance: "demo_INGRESS_shard", VirtualRouterID: 17})
			})
			for _, claim := range []bool{false, true} {
				n := node("worker", 10, "worker:11", "worker:12")
				n.Listed = tt.listed
				if tt.own != "" {
					n.Interfaces = append(n.Interfaces, v1alpha1.Interface{Name: "ens4", Addresses: []netip.Prefix{netip.MustParsePrefix(tt.own)}})
				}
				if len(tt.listed) > 1 {
					n.Peers[0].Elsewhere = testkit.Addrs("198.51.100.11")
				}
				want := tt.want
				if claim {
					n.Peers[1].Elsewhere = testkit.Addrs(claimed)
					if tt.own != "" && want != nil {
						want = append(slices.Clone(want), testkit.Addrs(claimed)...)
					}
				}
				k := New(c, n)
				i := slices.IndexFunc(k.Instances, func(i Instance) bool { return i.RouterID == 17 })
				switch {
				case tt.why != "" && (i >= 0 || !slices.Contains(k.Idle, "ingress-shard: "+tt.why)):
					t.Errorf("claim %v: takes part %v, left out %q", claim, i >= 0, k.Idle)
				case tt.why == "" && (i < 0 || !slices.Equal(k.Instances[i].Peers, want)):
					t.Errorf("claim %v: %+v, left out %q", claim, k.Instances, k.Idle)
				}
			}
		})
	}
}

// An address without a prefix length on the link counts as in its machine network (hard case
// 10).
func TestVIPInTheNetworkOfAHostPrefix(t *testing.T) {
	c := cluster(func(s *v1alpha1.ClusterConfigSpec) {
		s.MachineNetworks = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/64")}
	})
	n := node("worker", 10, "worker:11")
	n.Interfaces[0].Addresses[1] = netip.MustParsePrefix("2001:db8::10/128")
	k := New(c, n)
	if len(k.Idle) > 0 || len(k.Instances) != 2 || !slices.Equal(k.Instances[1].Peers, testkit.Addrs("2001:db8::11")) {
		t.Errorf("%+v, left out %q", k.Instances, k.Idle)
	}
}

// withAddresses leaves the first peer n of its addresses.
func withAddresses(node *v1alpha1.Node, n int) *v1alpha1.Node {
	node.Peers[0].Addresses = node.Peers[0].Addresses[:n]
	return node
}

func TestInstances(t *testing.T) {
	for _, tt := range []struct {
		name     string
		settings v1alpha1.VRRPSettings
		node     *v1alpha1.Node
		want     []Instance // of the API, without common fields
	}{
		{"the bootstrap may be unknown, and is heard all the same", fast, node("master", 10, "master:12", "master:11", "worker:20"), []Instance{
			{Version: 3, AdvertInterval: "0.1", Source: testkit.Addrs("192.0.2.10")[0], Peers: testkit.Addrs("192.0.2.11", "192.0.2.12"), FullTTL: true},
			{Version: 3, AdvertInterval: "0.1", Source: testkit.Addrs("2001:db8::10")[0], Peers: testkit.Addrs("2001:db8::11", "2001:db8::12"), FullTTL: true},
		}},
		{"a bootstrap that is known by one family is heard by the other", fast, withAddresses(node("master", 10, "bootstrap:9", "master:11"), 1), []Instance{
			{Version: 3, AdvertInterval: "0.1", Source: testkit.Addrs("192.0.2.10")[0], Peers: testkit.Addrs("192.0.2.9", "192.0.2.11"), FullTTL: true, OnLink: true, AllKnown: true},
			{Version: 3, AdvertInterval: "0.1", Source: testkit.Addrs("2001:db8::10")[0], Peers: testkit.Addrs("2001:db8::11"), FullTTL: true},
		}},
		{"classic: IPv6 has version 3 and no password", classic, node("master", 10, "master:11"), []Instance{
			{Version: 2, AdvertInterval: "1", Password: "demo_api", Source: testkit.Addrs("192.0.2.10")[0], Peers: testkit.Addrs("192.0.2.11")},
			{Version: 3, AdvertInterval: "1", Source: testkit.Addrs("2001:db8::10")[0], Peers: testkit.Addrs("2001:db8::11")},
		}},
		{"multicast has no peers", v1alpha1.VRRPSettings{Profile: "fast", Mode: "multicast", Version: 3, AdvertIntervalMS: 50}, node("master", 10, "master:11"), []Instance{
			{Version: 3, AdvertInterval: "0.05"}, {Version: 3, AdvertInterval: "0.05"},
		}},
		{"a lone holder is quiet", fast, node("bootstrap", 10), []Instance{
			{Version: 3, AdvertInterval: "0.1", QuietGroup: "224.0.0.254", FullTTL: true, OnLink: true, AllKnown: true}, {Version: 3, AdvertInterval: "0.1", QuietGroup: "ff02::114", FullTTL: true, OnLink: true, AllKnown: true},
		}},
		{"the host that bootstraps is a peer once, and never of itself", fast, node("master", 10, "bootstrap:11", "master:11", "bootstrap:10"), []Instance{
			{Version: 3, AdvertInterval: "0.1", Source: testkit.Addrs("192.0.2.10")[0], Peers: testkit.Addrs("192.0.2.11"), FullTTL: true, OnLink: true, AllKnown: true},
			{Version: 3, AdvertInterval: "0.1", Source: testkit.Addrs("2001:db8::10")[0], Peers: testkit.Addrs("2001:db8::11"), FullTTL: true, OnLink: true, AllKnown: true},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.node.VRRP = &tt.settings
			base, terms := vrrp.PriorityTerms(&v1alpha1.Group{Role: v1alpha1.GroupAPI}, tt.node.Role)
			for i := range tt.want {
				w := &tt.want[i]
				w.Name, w.Interface, w.RouterID, w.Priority, w.Terms = fmt.Sprintf("demo_API_%d", i), "br-ex", 10, base, terms
				w.VIP = []netip.Prefix{netip.MustParsePrefix("192.0.2.2/32"), netip.MustParsePrefix("2001:db8::2/128")}[i]
				w.Label = []string{"vip", ""}[i] // hard case 33
			}
			got := New(cluster(nil), tt.node).Instances
			for i := range got {
				if s := got[i].Source; s.IsValid() && s != got[i].At.Source.Addr() {
					t.Errorf("source %v, found at %v", s, got[i].At.Source)
				}
				got[i].At = v1alpha1.Binding{}
			}
			addresses := cmp.Options{cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })}
			testkit.Equal(t, tt.want, got, addresses, sameTerm)
		})
	}
}

// Nodes start with the initial settings of the cluster, until they have others.
func TestStart(t *testing.T) {
	c := cluster(func(s *v1alpha1.ClusterConfigSpec) { s.VRRP.Start = &classic })
	n := node("master", 10, "master:11")
	testkit.Equal(t, 2, New(c, n).Instances[0].Version)
	n.VRRP = &c.Spec.VRRP.Target
	testkit.Equal(t, 3, New(c, n).Instances[0].Version)
}

// Beside nodes of the operator, advertisements go between the addresses that the cluster lists,
// even if the VIP is in another network; after the migration, as usual, between those in the
// VIP's network.
func TestHardCase46AsListed(t *testing.T) {
	c := cluster(func(s *v1alpha1.ClusterConfigSpec) {
		s.VRRP.Start = &classic
		for i, vip := range []string{"2001:db8:1::5", "2001:db8:1::4"} {
			s.Groups[i].VIPs = testkit.Addrs([]string{"192.168.111.5", "192.168.111.4"}[i], vip)
		}
		s.Groups = append(s.Groups, v1alpha1.Group{Name: "ingress-shard", Role: v1alpha1.GroupIngress, VIPs: testkit.Addrs("2001:db8:1::17"), Instance: "demo_INGRESS_shard", VirtualRouterID: 17})
	})
	listed := func(n int) []netip.Addr {
		return testkit.Addrs(fmt.Sprintf("192.168.111.%d", n), fmt.Sprintf("fd99:7::%d", n))
	}
	near := func(n int) netip.Addr { return netip.MustParseAddr(fmt.Sprintf("2001:db8:1::%d", n)) }
	for name, tt := range map[string]struct {
		role      string
		settings  v1alpha1.VRRPSettings
		annotated bool // OVN-Kubernetes lists all addresses
		instance  string
		source    string
		peers     []netip.Addr
	}{
		"API":                            {"master", classic, true, "demo_API_1", "fd99:7::30", testkit.Addrs("fd99:7::31", "fd99:7::32")},
		"API, IPv4":                      {"master", classic, true, "demo_API_0", "192.168.111.30", testkit.Addrs("192.168.111.31", "192.168.111.32")},
		"API, no annotation":             {"master", classic, false, "demo_API_1", "fd99:7::30", testkit.Addrs("fd99:7::31", "fd99:7::32")},
		"ingress":                        {"worker", classic, true, "demo_INGRESS_1", "fd99:7::30", testkit.Addrs("fd99:7::31", "fd99:7::32")},
		"ingress, no annotation":         {"worker", classic, false, "demo_INGRESS_1", "fd99:7::30", testkit.Addrs("fd99:7::31", "fd99:7::32")},
		"a group that is vipgen's":       {"worker", classic, true, "demo_INGRESS_shard_0", "2001:db8:1::30", testkit.Addrs("2001:db8:1::31", "2001:db8:1::32")},
		"API, migrated":                  {"master", fast, true, "demo_API_1", "2001:db8:1::30", testkit.Addrs("2001:db8:1::31", "2001:db8:1::32")},
		"ingress, migrated":              {"worker", fast, true, "demo_INGRESS_1", "2001:db8:1::30", testkit.Addrs("2001:db8:1::31", "2001:db8:1::32")},
		"ingress, migrated, unannotated": {"worker", fast, false, "demo_INGRESS_1", "fd99:7::30", testkit.Addrs("fd99:7::31", "fd99:7::32")},
		"API, migrated, unannotated":     {"master", fast, false, "demo_API_1", "fd99:7::30", testkit.Addrs("fd99:7::31", "fd99:7::32")},
	} {
		t.Run(name, func(t *testing.T) {
			n := &v1alpha1.Node{Name: "node-30", Role: tt.role, VRRP: &tt.settings, Listed: listed(30), Interfaces: []v1alpha1.Interface{{
				Name: "eth0", DefaultRoute4: true, DefaultRoute6: true, Addresses: []netip.Prefix{
					netip.MustParsePrefix("192.168.111.30/24"), netip.MustParsePrefix("2001:db8:1::30/64"), netip.MustParsePrefix("fd99:7::30/64")},
			}}}
			for _, i := range []int{31, 32} {
				p := v1alpha1.Peer{Name: fmt.Sprintf("node-%d", i), Role: tt.role, Addresses: listed(i)}
				if tt.annotated {
					p.Elsewhere = []netip.Addr{near(i)}
				}
				n.Peers = append(n.Peers, p)
			}
			if tt.annotated {
				n.Listed = append(n.Listed, near(30))
			}
			k := New(c, n)
			i := slices.IndexFunc(k.Instances, func(i Instance) bool { return i.Name == tt.instance })
			if i < 0 {
				t.Fatalf("takes no part: %q", k.Idle)
			}
			if got := k.Instances[i]; got.Source.String() != tt.source || !slices.Equal(got.Peers, tt.peers) {
				t.Errorf("from %v to %v, want from %s to %v", got.Source, got.Peers, tt.source, tt.peers)
			}
		})
	}
}

// Instances are left out with those of their sync group, and with the files that only they track.
func TestLeaveOut(t *testing.T) {
	const api, ingress, why = "lb-path lb-or-api machine-config", "ingress-ready ingress-here ingress-away", vrrp.LeftOutMismatch
	for _, tt := range []struct{ name, leave, instances, groups, files, idle string }{
		{"none", "", "demo_API_0 demo_API_1 demo_INGRESS_0 demo_INGRESS_1", "demo_API", api + " " + ingress, ""},
		{"one", "demo_INGRESS_1", "demo_API_0 demo_API_1 demo_INGRESS_0", "demo_API", api + " " + ingress, "demo_INGRESS_1"},
		{"a group", "demo_INGRESS_0 demo_INGRESS_1", "demo_API_0 demo_API_1", "demo_API", api, "demo_INGRESS_0 demo_INGRESS_1"},
		{"one of a sync group", "demo_API_1", "demo_INGRESS_0 demo_INGRESS_1", "", ingress, "demo_API_0 demo_API_1"},
		{"all", "demo_API_1 demo_INGRESS_0 demo_INGRESS_1", "", "", "", ""},
	} {
		k := New(cluster(func(s *v1alpha1.ClusterConfigSpec) {
			s.ControlPlane.Schedulable, s.Groups[0].Together = true, true
		}), node("master", 10, "master:11"))
		k.LeaveOut(strings.Fields(tt.leave), why)
		var groups, files, idle []string
		for _, g := range k.SyncGroups {
			groups = append(groups, g.Name)
		}
		for _, f := range k.TrackFiles {
			files = append(files, f.Name)
		}
		for _, name := range strings.Fields(tt.idle) {
			idle = append(idle, name+": "+why.Text())
		}
		if tt.instances == "" {
			idle = []string{why.Text()}
		}
		in := testkit.In(t, tt.name)
		testkit.Equal(in, tt.instances, strings.Join(instances(k), " "))
		testkit.Equal(in, tt.groups, strings.Join(groups, " "))
		testkit.Equal(in, tt.files, strings.Join(files, " "))
		testkit.Equal(in, idle, k.Idle)
	}
}

// keepalived elects the holders of its own groups: routers know the others.
func TestAnnounced(t *testing.T) {
	n := node(v1alpha1.RoleMaster, 10, "master:11", "master:12")
	for _, tt := range []struct {
		change func(*v1alpha1.ClusterConfigSpec)
		want   []string
	}{
		{func(s *v1alpha1.ClusterConfigSpec) { s.Groups[1].Announce = v1alpha1.AnnounceBGP }, []string{"demo_API_0", "demo_API_1"}},
		{func(s *v1alpha1.ClusterConfigSpec) { s.Groups[0].Announce = v1alpha1.AnnounceTable }, nil},
		{func(s *v1alpha1.ClusterConfigSpec) {
			s.Announce, s.Groups[0].Announce = v1alpha1.AnnounceBGP, v1alpha1.AnnounceVRRP
		}, []string{"demo_API_0", "demo_API_1"}},
		{func(s *v1alpha1.ClusterConfigSpec) { s.Announce = v1alpha1.AnnounceBGP }, nil},
	} {
		testkit.Equal(t, tt.want, instances(New(cluster(tt.change), n)))
	}
}
