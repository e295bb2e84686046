package reference

import (
	"flag"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
)

// images of the tests; both are this machine's programs.
var images = v1alpha1.Images{Keepalived: "registry.example.com/keepalived:1", HAProxy: "registry.example.com/haproxy:1"}

// cluster is dual-stack, with vipgen's own VRRP settings, which make no difference here.
func cluster(change func(*v1alpha1.ClusterConfigSpec)) *v1alpha1.ClusterConfig {
	worker := map[string]string{v1alpha1.RoleLabel(v1alpha1.RoleWorker): ""}
	c := &v1alpha1.ClusterConfig{
		APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindClusterConfig,
		Metadata: v1alpha1.ClusterMetadata{Name: "demo"},
		Spec: v1alpha1.ClusterConfigSpec{
			Domain: "demo.example.com", Platform: "baremetal", Topology: v1alpha1.TopologyHighlyAvailable,
			ControlPlane: v1alpha1.ControlPlane{Replicas: 3},
			LoadBalancer: v1alpha1.LoadBalancerInCluster,
			VRRP:         v1alpha1.ClusterVRRP{Target: v1alpha1.VRRPSettings{Profile: v1alpha1.ProfileFast, Mode: v1alpha1.ModeUnicast, Version: 3, AdvertIntervalMS: 100}},
			Groups: []v1alpha1.Group{
				{Name: "api", Role: v1alpha1.GroupAPI, VIPs: testkit.Addrs("192.0.2.5", "2001:db8::5"), Instance: "demo_API", VirtualRouterID: 10, Password: "demo_api"},
				{Name: "ingress", Role: v1alpha1.GroupIngress, VIPs: testkit.Addrs("192.0.2.6", "2001:db8::6"), Instance: "demo_INGRESS", VirtualRouterID: 11, Password: "demo_ing",
					Controller: v1alpha1.DefaultIngress, NodeSelector: worker, HealthPort: 1936, Domains: []string{"apps.demo.example.com"}},
				{Name: "ingress-other", Role: v1alpha1.GroupIngress, VIPs: testkit.Addrs("192.0.2.7"), Instance: "demo_INGRESS_other", VirtualRouterID: 12, Password: "demo_ing",
					Controller: "other", NodeSelector: worker, HealthPort: 1937},
			},
			Ports: v1alpha1.DefaultPorts,
		},
	}
	if change != nil {
		change(&c.Spec)
	}
	return c
}

// prefixes returns the addresses of node n.
func prefixes(n int) []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix(fmt.Sprintf("192.0.2.%d/24", n)),
		netip.MustParsePrefix(fmt.Sprintf("2001:db8::%d/64", n)),
	}
}

// node returns node n of a role, with the given peers as "role:number".
func node(role string, n int, peers ...string) *v1alpha1.Node {
	out := &v1alpha1.Node{Name: fmt.Sprintf("%s-%d", role, n), Role: role, Interfaces: []v1alpha1.Interface{{Name: "eth0", Addresses: prefixes(n)}}}
	for _, p := range peers {
		role, number, _ := strings.Cut(p, ":")
		out.Peers = append(out.Peers, v1alpha1.Peer{Name: role + "-" + number, Role: role, Addresses: testkit.Addrs("192.0.2."+number, "2001:db8::"+number)})
	}
	return out
}

// rendered returns the files of a node by path.
func rendered(t *testing.T, c *v1alpha1.ClusterConfig, n *v1alpha1.Node) map[string]string {
	t.Helper()
	list, err := render(c, n, images)
	testkit.Must(t, err)
	out := map[string]string{}
	for _, f := range list {
		out[f.path] = string(f.data)
	}
	return out
}

var (
	masterNode    = node("master", 10, "master:11", "master:12", "worker:20")
	workerNode    = node("worker", 20, "master:10", "master:11", "worker:21")
	bootstrapNode = node("bootstrap", 9, "master:10", "master:11")
)

var update = flag.Bool("update", false, "write what comes out to testdata")

// TestRendered: the daemons accept the configurations, in testdata. Peers of the API are the
// control plane, those of ingress all nodes; a bootstrap host has no checks, and without peers
// it sends to all (multicast); the checks of instances that move together belong to their group.
func TestRendered(t *testing.T) {
	for name, n := range map[string]*v1alpha1.Node{"master": masterNode, "worker": workerNode, "bootstrap": bootstrapNode, "bootstrap-alone": node("bootstrap", 9)} {
		conf := []byte(rendered(t, cluster(nil), n)[v1alpha1.KeepalivedConf])
		testkit.Kept(t, "testdata/"+name+".conf", conf, *update)
		daemon.Keepalived(t, conf)
	}
	together := rendered(t, cluster(func(s *v1alpha1.ClusterConfigSpec) { s.Groups[0].Together = true }), masterNode)[v1alpha1.KeepalivedConf]
	daemon.Keepalived(t, []byte(together))
	testkit.Contains(t, strings.Join(strings.Fields(together), " "),
		"vrrp_sync_group demo_API { group { demo_API_0 demo_API_1 } track_script { chk_ocp_lb chk_ocp_both chk_mcs } }")
	testkit.Equal(testkit.In(t, "checks of the group and of both instances of ingress"), 3, strings.Count(together, "track_script {"))
	cfg := []byte(rendered(t, cluster(nil), masterNode)[v1alpha1.HAProxyConf])
	testkit.Kept(t, "testdata/haproxy.cfg", cfg, *update)
	daemon.HAProxy(t, cfg)
	blind := node("master", 10, "master:11")
	blind.NoIPv6 = true
	testkit.Lacks(t, rendered(t, cluster(nil), blind)[v1alpha1.HAProxyConf], "::")
}

func TestRefusals(t *testing.T) {
	hostile := node("master", 10, "master:11")
	hostile.Interfaces[0].Name = "eth0 }"
	for _, tt := range []struct {
		name    string
		cluster func(*v1alpha1.ClusterConfigSpec)
		node    *v1alpha1.Node
		images  v1alpha1.Images
		want    string
	}{
		{"no peers (hard case 2)", nil, node("master", 10), images, "no other control-plane node is known"},
		{"external load balancer", func(s *v1alpha1.ClusterConfigSpec) { s.LoadBalancer = v1alpha1.LoadBalancerExternal }, masterNode, images, "hold no VIPs"},
		{"no API VIP", func(s *v1alpha1.ClusterConfigSpec) { s.Groups = s.Groups[1:] }, workerNode, images, "no API VIP"},
		{"a name that is syntax", nil, hostile, images, "interfaces[0].name"},
		{"a cluster that is not valid", func(s *v1alpha1.ClusterConfigSpec) { s.Domain = "a b" }, masterNode, images, "spec.domain"},
		{"no image", nil, masterNode, v1alpha1.Images{Keepalived: "k"}, "image"},
	} {
		_, err := render(cluster(tt.cluster), tt.node, tt.images)
		testkit.Fails(testkit.In(t, tt.name), err, tt.want)
	}
}
