package externallb

import (
	_ "embed"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/render"
)

//go:embed testdata/install-config.yaml
var installConfig string

const external = "apiVersion: vipgen.io/v1alpha1\nkind: VIPConfig\nspec:\n  loadBalancer: {type: External}\n"

func node(name, role string, list ...string) v1alpha1.Peer {
	p := v1alpha1.Peer{Name: name, Role: role}
	for _, a := range list {
		p.Addresses = append(p.Addresses, netip.MustParseAddr(a))
	}
	return p
}

func load(vipConfig string, x Options) (*Plan, problem.List) {
	return Load(render.Sources{
		InstallConfig: render.File{Name: "install-config.yaml", Data: []byte(installConfig)},
		VIPConfig:     &render.File{Name: "vipgen.yaml", Data: []byte(vipConfig)},
	}, render.Options{}, x)
}

func plan(t *testing.T, vipConfig string, x Options) *Plan {
	t.Helper()
	p, list := load(vipConfig, x)
	if p == nil {
		t.Fatal(list)
	}
	return p
}

// servers lists the servers of a backend.
func servers(p *Plan, backend string) string {
	var out []string
	for _, s := range p.Services {
		for _, b := range s.Backends {
			for _, server := range b.Servers {
				if b.Name == backend {
					out = append(out, server.Name+" "+server.Address.String())
				}
			}
		}
	}
	return strings.Join(out, ", ")
}

// A node is reached at its address in the first matching machine network, else at one of the
// primary family, else at any.
func TestAddresses(t *testing.T) {
	allow := []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("2001:db8:1::/64")}
	for _, tt := range []struct {
		list []string
		want string
	}{
		{[]string{"192.0.2.10"}, "192.0.2.10:6443"},
		{[]string{"2001:db8::10", "198.51.100.10", "192.0.2.10"}, "192.0.2.10:6443"},
		{[]string{"198.51.100.10", "2001:db8::10"}, "[2001:db8::10]:6443"},
		{[]string{"2001:db8:1::10", "198.51.100.10"}, "198.51.100.10:6443"},
		{[]string{"2001:db8:1::10"}, "[2001:db8:1::10]:6443"},
	} {
		p := plan(t, external, Options{Nodes: []v1alpha1.Peer{node("m0", "", tt.list...), node("w0", "worker", "192.0.2.20")}, Allow: allow})
		testkit.Equal(testkit.In(t, tt.list), "m0 "+tt.want, servers(p, "api"))
	}
}

// The bootstrap host serves the API until it is removed; where it becomes a node, both are one
// server.
func TestBootstrap(t *testing.T) {
	nodes := []v1alpha1.Peer{node("m0", "master", "192.0.2.10"), node("w0", "worker", "192.0.2.20"), node("bootstrap", "bootstrap", "192.0.2.9")}
	testkit.Equal(t, "bootstrap 192.0.2.9:22623, m0 192.0.2.10:22623", servers(plan(t, external, Options{Nodes: nodes}), "machine-config"))
	testkit.Equal(t, "m0 192.0.2.10:22623", servers(plan(t, external, Options{Nodes: nodes, BootstrapGone: true}), "machine-config"))
	nodes[2] = node("bootstrap", "bootstrap", "192.0.2.10")
	testkit.Equal(t, "m0 192.0.2.10:22623", servers(plan(t, external, Options{Nodes: nodes}), "machine-config"))
	testkit.Equal(t, "w0 192.0.2.20:443", servers(plan(t, external, Options{Nodes: nodes}), "ingress-https"))
}

// Nodes selected by another ingress controller do not belong to the default one; if the
// selectors are the same, they belong to both.
func TestControllers(t *testing.T) {
	const blue = external + "  ingress:\n  - name: blue\n    vips: [192.0.2.4, \"2001:db8::4\"]\n    domains: [blue.example.com]\n"
	nodes := []v1alpha1.Peer{node("m0", "master", "192.0.2.10"), node("w0", "worker", "192.0.2.20"), node("i0", "infra", "192.0.2.30")}
	for selector, want := range map[string][2]string{
		"": {"i0 192.0.2.30:443, w0 192.0.2.20:443", "i0 192.0.2.30:443, w0 192.0.2.20:443"},
		"    nodeSelector: {node-role.kubernetes.io/infra: \"\"}\n": {"w0 192.0.2.20:443", "i0 192.0.2.30:443"},
	} {
		p := plan(t, blue+selector, Options{Nodes: nodes})
		got := [2]string{servers(p, "ingress-https"), servers(p, "ingress-blue-https")}
		testkit.Equal(testkit.In(t, selector), want, got)
	}
}

// VIPs held by the nodes stay there, except for the first API VIPs and those of the default
// ingress controller, which the load balancer replaces.
func TestInCluster(t *testing.T) {
	const more = `apiVersion: vipgen.io/v1alpha1
kind: VIPConfig
spec:
  ingress: [{name: blue, vips: [192.0.2.4, "2001:db8::4"], domains: [blue.example.com]}]
  additionalAPIVIPs: [{name: mgmt, vips: [192.0.2.6, "2001:db8::6"]}]
`
	p := plan(t, more, Options{Nodes: []v1alpha1.Peer{node("m0", "master", "192.0.2.10"), node("w0", "worker", "192.0.2.20")},
		APIVIPs: []netip.Addr{netip.MustParseAddr("192.0.2.250")}})
	var got []string
	for _, n := range p.DNS {
		got = append(got, fmt.Sprint(n.Name, n.Addresses))
	}
	want := []string{"api.demo.example.com[192.0.2.250]", "api-int.demo.example.com[192.0.2.250]", "*.apps.demo.example.com[]"}
	testkit.Equal(t, want, got)
}

// The pair's router ID is one that the cluster's nodes neither have nor would choose.
func TestRouterID(t *testing.T) {
	pair := []Balancer{
		{"lb-0", []netip.Prefix{netip.MustParsePrefix("192.0.2.251/24"), netip.MustParsePrefix("2001:db8::251/64")}},
		{"lb-1", []netip.Prefix{netip.MustParsePrefix("192.0.2.252/24"), netip.MustParsePrefix("2001:db8::252/64")}},
	}
	x := Options{Nodes: []v1alpha1.Peer{node("m0", "master", "192.0.2.10"), node("w0", "worker", "192.0.2.20")}, Balancers: pair, Interface: "eth0"}
	derived := v1alpha1.RouterID("demo-lb")
	for vrrp, want := range map[string]int{
		"": derived,
		fmt.Sprintf("  vrrp: {virtualRouterIDs: {api: %d}}\n", derived):                                              derived + 1,
		fmt.Sprintf("  additionalAPIVIPs: [{name: mgmt, vips: [192.0.2.6], virtualRouterID: %d}]\n", derived):        derived + 1,
		fmt.Sprintf("  vrrp: {reservedRouterIDs: [%d, %d]}\n", derived, derived+1):                                   derived + 2,
		fmt.Sprintf("  vrrp: {virtualRouterIDs: {ingress: %d}, reservedRouterIDs: [%d, 255]}\n", derived, derived+1): derived + 2,
		fmt.Sprintf("  vrrp: {reservedRouterIDs: [%s]}\n", commas(derived, 255)):                                     1,
	} {
		p := plan(t, external+vrrp, x)
		if p.Pair[0].RouterID != want || p.Pair[1].RouterID != want {
			t.Errorf("%q: %d, want %d", vrrp, p.Pair[0].RouterID, want)
		}
	}
	if p, list := load(external+fmt.Sprintf("  vrrp: {reservedRouterIDs: [%s]}\n", commas(1, 255)), x); p != nil || !strings.Contains(list.Error(), "no virtual router ID left") {
		t.Errorf("%+v, %v", p, list)
	}
	x.RouterID = 9
	testkit.Equal(testkit.In(t, "the user's"), 9, plan(t, external, x).Pair[0].RouterID)
}

// commas lists a to b.
func commas(a, b int) string {
	var out []string
	for i := a; i <= b; i++ {
		out = append(out, fmt.Sprint(i))
	}
	return strings.Join(out, ",")
}
