package reference

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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

// settings returns the lines of keepalived.conf that affect timing and election, those of a
// block after its name.
func settings(conf string) (out []string) {
	var block string
	for line := range strings.Lines(conf) {
		f := strings.Fields(line)
		switch {
		case len(f) < 2:
		case f[0] == "vrrp_script" || f[0] == "vrrp_instance" || f[0] == "vrrp_sync_group":
			block = f[1]
		case slices.Contains([]string{"interval", "weight", "rise", "fall", "version", "priority", "advert_int", "state", "auth_pass", "unicast_src_ip"}, f[0]):
			out = append(out, block+" "+strings.Join(f, " "))
		}
	}
	return out
}

// block returns the words of the first block of a kind in an instance.
func block(t *testing.T, conf, instance, kind string) []string {
	t.Helper()
	_, rest, ok := strings.Cut(conf, "vrrp_instance "+instance+" {")
	rest, _, _ = strings.Cut(rest, "\n}\n")
	if !ok {
		t.Fatalf("no instance %s in\n%s", instance, conf)
	}
	_, rest, ok = strings.Cut(rest, kind+" {")
	if !ok {
		return nil
	}
	rest, _, _ = strings.Cut(rest, "}")
	return strings.Fields(rest)
}

var (
	masterNode    = node("master", 10, "master:11", "master:12", "worker:20")
	workerNode    = node("worker", 20, "master:10", "master:11", "worker:21")
	bootstrapNode = node("bootstrap", 9, "master:10", "master:11")
)

func TestSettings(t *testing.T) {
	instance := func(name string, version, priority int, password, source string) []string {
		out := []string{name + " state BACKUP", fmt.Sprintf("%s version %d", name, version), fmt.Sprintf("%s priority %d", name, priority), name + " advert_int 1"}
		if source != "" {
			out = append(out, name+" unicast_src_ip "+source)
		}
		if password != "" {
			out = append(out, name+" auth_pass "+password)
		}
		return out
	}
	api := []string{
		"chk_ocp_lb interval 2", "chk_ocp_lb weight 20", "chk_ocp_lb rise 3", "chk_ocp_lb fall 3",
		"chk_ocp_both interval 2", "chk_ocp_both weight 5", "chk_ocp_both rise 3", "chk_ocp_both fall 3",
		"chk_mcs interval 2", "chk_mcs weight 3", "chk_mcs rise 3", "chk_mcs fall 3",
	}
	ingress := []string{
		"chk_ingress interval 1", "chk_ingress rise 3", "chk_ingress fall 2",
		"chk_ingress_ready interval 1", "chk_ingress_ready weight 10", "chk_ingress_ready rise 3", "chk_ingress_ready fall 2",
		"chk_default_ingress interval 5", "chk_default_ingress weight 50", "chk_default_ingress rise 3", "chk_default_ingress fall 2",
	}
	for _, tt := range []struct {
		name string
		node *v1alpha1.Node
		want []string
	}{
		{"master", masterNode, slices.Concat(api, ingress,
			instance("demo_API_0", 2, 40, "demo_api", "192.0.2.10"), instance("demo_API_1", 3, 40, "", "2001:db8::10"),
			instance("demo_INGRESS_0", 2, 20, "demo_ing", "192.0.2.10"), instance("demo_INGRESS_1", 3, 20, "", "2001:db8::10"))},
		{"worker", workerNode, slices.Concat(ingress,
			instance("demo_INGRESS_0", 2, 20, "demo_ing", "192.0.2.20"), instance("demo_INGRESS_1", 3, 20, "", "2001:db8::20"))},
		{"bootstrap", bootstrapNode, slices.Concat(
			instance("demo_API_0", 2, 70, "demo_api", "192.0.2.9"), instance("demo_API_1", 3, 70, "", "2001:db8::9"))},
		{"bootstrap alone: multicast", node("bootstrap", 9), slices.Concat(
			instance("demo_API_0", 2, 70, "demo_api", ""), instance("demo_API_1", 3, 70, "", ""))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conf := rendered(t, cluster(nil), tt.node)[v1alpha1.KeepalivedConf]
			if diff := cmp.Diff(tt.want, settings(conf)); diff != "" {
				t.Errorf("settings (-want +got):\n%s\n%s", diff, conf)
			}
			daemon.Keepalived(t, []byte(conf))
		})
	}
}

func TestBlocks(t *testing.T) {
	master := rendered(t, cluster(nil), masterNode)[v1alpha1.KeepalivedConf]
	worker := rendered(t, cluster(nil), workerNode)[v1alpha1.KeepalivedConf]
	bootstrap := rendered(t, cluster(nil), bootstrapNode)[v1alpha1.KeepalivedConf]
	for _, tt := range []struct {
		name, conf, instance, block string
		want                        []string
	}{
		{"peers of the API are the control plane", master, "demo_API_0", "unicast_peer", []string{"192.0.2.11", "192.0.2.12"}},
		{"peers by IPv6", master, "demo_API_1", "unicast_peer", []string{"2001:db8::11", "2001:db8::12"}},
		{"peers of ingress are all nodes", master, "demo_INGRESS_0", "unicast_peer", []string{"192.0.2.11", "192.0.2.12", "192.0.2.20"}},
		{"also of a worker", worker, "demo_INGRESS_0", "unicast_peer", []string{"192.0.2.10", "192.0.2.11", "192.0.2.21"}},
		{"checks of the API", master, "demo_API_1", "track_script", []string{"chk_ocp_lb", "chk_ocp_both", "chk_mcs"}},
		{"checks of ingress", worker, "demo_INGRESS_1", "track_script", []string{"chk_ingress", "chk_ingress_ready", "chk_default_ingress"}},
		{"no checks on the bootstrap", bootstrap, "demo_API_0", "track_script", nil},
		{"a VIP has a host prefix", master, "demo_API_0", "virtual_ipaddress", []string{"192.0.2.5/32"}},
	} {
		testkit.Equal(testkit.In(t, tt.name), tt.want, block(t, tt.conf, tt.instance, tt.block))
	}
}

// The checks of instances that move together belong to their group.
func TestTogether(t *testing.T) {
	c := cluster(func(s *v1alpha1.ClusterConfigSpec) { s.Groups[0].Together = true })
	conf := rendered(t, c, masterNode)[v1alpha1.KeepalivedConf]
	daemon.Keepalived(t, []byte(conf))
	_, group, _ := strings.Cut(conf, "vrrp_sync_group demo_API {")
	group, _, _ = strings.Cut(group, "\n}\n")
	want := strings.Fields("group { demo_API_0 demo_API_1 } track_script { chk_ocp_lb chk_ocp_both chk_mcs }")
	testkit.Equal(t, want, strings.Fields(group))
	if got := block(t, conf, "demo_API_0", "track_script"); got != nil {
		t.Errorf("a member has checks: %q", got)
	}
}

func TestHAProxy(t *testing.T) {
	files := rendered(t, cluster(nil), masterNode)
	cfg := files[v1alpha1.HAProxyConf]
	daemon.HAProxy(t, []byte(cfg))
	testkit.Contains(t, cfg,
		"frontend main\n    bind :::9445 v4v6\n",
		"    bind :::9444 v4v6\n    monitor-uri /haproxy_ready\n",
		"    option httpchk GET /readyz HTTP/1.0\n",
		"    server master-10 192.0.2.10:6443 weight 1 verify none check check-ssl inter 1s fall 2 rise 3\n",
		"    server master-12 192.0.2.12:6443 weight",
	)
	testkit.Equal(t, 3, strings.Count(cfg, "    server "))
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
		if _, err := render(cluster(tt.cluster), tt.node, tt.images); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}
