package haproxy

import (
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

func withVIPs(vips ...string) *v1alpha1.ClusterConfig {
	g := v1alpha1.Group{Name: "api", Role: v1alpha1.GroupAPI}
	for _, v := range vips {
		g.VIPs = append(g.VIPs, netip.MustParseAddr(v))
	}
	c := &v1alpha1.ClusterConfig{Metadata: v1alpha1.ClusterMetadata{Name: "demo"}}
	c.Spec.Groups = []v1alpha1.Group{{Name: "ingress", Role: v1alpha1.GroupIngress, VIPs: g.VIPs}, g}
	c.Spec.Ports = v1alpha1.DefaultPorts
	return c
}

func peerAt(name, role string, list ...string) v1alpha1.Peer {
	p := v1alpha1.Peer{Name: name, Role: role}
	for _, a := range list {
		p.Addresses = append(p.Addresses, netip.MustParseAddr(a))
	}
	return p
}

func controlNode(role string, peers ...v1alpha1.Peer) *v1alpha1.Node {
	return &v1alpha1.Node{Name: "m1", Role: role, Peers: peers, Interfaces: []v1alpha1.Interface{{
		Name: "br-ex", DefaultRoute4: true, DefaultRoute6: true,
		Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.11/24"), netip.MustParsePrefix("2001:db8::11/64")},
	}}}
}

func TestBackends(t *testing.T) {
	others := []v1alpha1.Peer{
		peerAt("m2", "master", "198.51.100.12", "2001:db8::12", "192.0.2.12"),
		peerAt("w0", "worker", "192.0.2.20"),
		peerAt("a0", "arbiter", "192.0.2.19"),
		peerAt("bootstrap", "bootstrap", "192.0.2.9"),
		peerAt("m0", "master", "192.0.2.10", "2001:db8::10"),
	}
	for _, tt := range []struct {
		name string
		vips []string
		node *v1alpha1.Node
		want []Backend
	}{
		{"sorted, with the addresses of the VIP's network", []string{"192.0.2.2", "2001:db8::2"}, controlNode("master", others...),
			[]Backend{{"m0", "192.0.2.10:6443"}, {"m1", "192.0.2.11:6443"}, {"m2", "192.0.2.12:6443"}}},
		{"IPv6 first", []string{"2001:db8::2", "192.0.2.2"}, controlNode("master", others...),
			[]Backend{{"m0", "[2001:db8::10]:6443"}, {"m1", "[2001:db8::11]:6443"}, {"m2", "[2001:db8::12]:6443"}}},
		{"an arbiter has no API server", []string{"192.0.2.2"}, controlNode("arbiter", others...),
			[]Backend{{"m0", "192.0.2.10:6443"}, {"m2", "192.0.2.12:6443"}}},
		{"itself in the list", []string{"192.0.2.2"}, controlNode("master", peerAt("m1", "master", "192.0.2.99")),
			[]Backend{{"m1", "192.0.2.11:6443"}}},
		{"a peer without an address of the family", []string{"2001:db8::2"}, controlNode("master", peerAt("m0", "master", "192.0.2.10")),
			[]Backend{{"m1", "[2001:db8::11]:6443"}}},
		{"no address of the family", []string{"2001:db8::2"}, &v1alpha1.Node{Name: "m1", Role: "master"}, nil},
		{"no VIP", nil, controlNode("master", others...), nil},
	} {
		testkit.Equal(testkit.In(t, tt.name), tt.want, New(withVIPs(tt.vips...), tt.node).Backends)
	}
}

// A compute node's HAProxy is for the node's own programs: no other host can connect, the
// backends are the control plane's HAProxy, and no API server is checked.
func TestComputeNode(t *testing.T) {
	n := controlNode("infra", peerAt("m0", "master", "192.0.2.10"), peerAt("w0", "worker", "192.0.2.20"), peerAt("a0", "arbiter", "192.0.2.19"))
	text, err := Render(Template, withVIPs("192.0.2.2"), n)
	testkit.Must(t, err)
	for line, want := range map[string]bool{
		"    bind 127.0.0.1:9445\n":                         true,
		"    bind [::1]:9445\n":                             true,
		"0.0.0.0":                                           false,
		"    server m0 192.0.2.10:9445\n":                   true,
		"    monitor fail if { nbsrv(api-servers) lt 1 }\n": true,
		"    nbthread 1\n":                                  true,
		"    server ":                                       true,
		"w0":                                                false,
		"a0":                                                false,
		"readyz":                                            false,
		"backend listening":                                 false,
		"use_backend listening":                             false,
		"    use_backend any-server if { nbsrv(api-servers) lt 1 }\n": true,
	} {
		testkit.Equal(testkit.In(t, line, string(text)), want, strings.Contains(string(text), line))
	}
	// In the backends api-servers and any-server.
	testkit.Equal(t, 2, strings.Count(string(text), "    server "))
}

// Hard case 18: whatever the checks report, clients get a server. The last backend has all
// servers without checks.
func TestHardCase18AnyServer(t *testing.T) {
	text, err := Render(Template, withVIPs("192.0.2.2"), controlNode("master", peerAt("m0", "master", "192.0.2.10"), peerAt("m2", "master", "192.0.2.12")))
	testkit.Must(t, err)
	chosen := regexp.MustCompile(`(?m)^    (?:use|default)_backend .*$`).FindAllString(string(text), -1)
	testkit.Equal(t, []string{
		"    use_backend listening if { nbsrv(api-servers) lt 1 } { nbsrv(listening) gt 0 }",
		"    use_backend any-server if { nbsrv(api-servers) lt 1 }",
		"    default_backend api-servers",
		"    use_backend readyz if { path /readyz }",
	}, chosen)
	_, last, found := strings.Cut(string(text), "\nbackend any-server\n")
	if !found || strings.Contains(last, " check") || strings.Contains(last, "\nbackend ") {
		t.Errorf("the last backend is not any-server without checks:\n%s", text)
	}
	testkit.Equal(t, 3, strings.Count(last, "    server "))
}

// Without IPv6 in the kernel nothing binds to it (hard case 25).
func TestNoIPv6(t *testing.T) {
	for _, no := range []bool{false, true} {
		n := controlNode("master")
		n.NoIPv6 = no
		text, err := Render(Template, withVIPs("192.0.2.2"), n)
		testkit.Must(t, err)
		for bind, want := range map[string]bool{
			"    bind 0.0.0.0:9445 tcp-ut 30s\n":     true,
			"    bind 127.0.0.1:9444\n":              true,
			"    bind [::]:9445 v6only tcp-ut 30s\n": !no,
			"    bind [::1]:9444\n":                  !no,
		} {
			testkit.Equal(testkit.In(t, no, bind, string(text)), want, strings.Contains(string(text), bind))
		}
	}
}

// HAProxy 2.2 does not support a keep-alive idle time, and refuses to start with it (hard case
// 29); it is also left out on a node with an unknown HAProxy.
func TestHardCase29Versions(t *testing.T) {
	for version, want := range map[string]struct{ keepAlive, thread bool }{
		"": {}, "1.8": {}, "2.2": {}, "2.3": {keepAlive: true}, "2.5": {keepAlive: true}, "2.6": {true, true}, "2.10": {true, true}, "3.0": {true, true},
	} {
		n := controlNode("master")
		n.HAProxy = version
		text, err := Render(Template, withVIPs("192.0.2.2"), n)
		testkit.Must(t, err)
		for keyword, want := range map[string]bool{"clitcpka-idle": want.keepAlive, "srvtcpka-idle": want.keepAlive, " thread 1\n": want.thread} {
			testkit.Equal(testkit.In(t, version, keyword), want, strings.Contains(string(text), keyword))
		}
	}
}
