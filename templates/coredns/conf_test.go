package coredns

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

func texts[T fmt.Stringer](list []T) []string {
	var out []string
	for _, a := range list {
		out = append(out, a.String())
	}
	return out
}

func cluster() *v1alpha1.ClusterConfig {
	c := &v1alpha1.ClusterConfig{Metadata: v1alpha1.ClusterMetadata{Name: "demo"}}
	c.Spec.Domain = "demo.example.com"
	c.Spec.MachineNetworks = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/64")}
	c.Spec.Groups = []v1alpha1.Group{
		{Name: "api", Role: v1alpha1.GroupAPI, VIPs: testkit.Addrs("192.0.2.2", "2001:db8::2")},
		{Name: "ingress", Role: v1alpha1.GroupIngress, VIPs: testkit.Addrs("192.0.2.3"), Domains: []string{"apps.demo.example.com"}},
	}
	c.Spec.Ports = v1alpha1.DefaultPorts
	return c
}

func node() *v1alpha1.Node {
	return &v1alpha1.Node{Name: "m0", Role: "master", Interfaces: []v1alpha1.Interface{
		{Name: "br-ex", Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.10/24"), netip.MustParsePrefix("2001:db8::10/64")}},
		{Name: "storage", Addresses: []netip.Prefix{netip.MustParsePrefix("198.51.100.10/24")}},
	}}
}

// Upstreams that would loop or exceed the limit are left out (hard case 16).
func TestUpstreams(t *testing.T) {
	var many, first []string
	for i := range 20 {
		many = append(many, fmt.Sprintf("203.0.113.%d", i+1))
	}
	first = many[:15]
	for _, tt := range []struct {
		name          string
		user, network []string
		want          []string
	}{
		{"the network's", nil, []string{"203.0.113.2", "203.0.113.1"}, []string{"203.0.113.2", "203.0.113.1"}},
		{"the user's win", []string{"203.0.113.9"}, []string{"203.0.113.1"}, []string{"203.0.113.9"}},
		{"the node itself", nil, []string{"192.0.2.10", "2001:db8::10", "198.51.100.10", "203.0.113.1"}, []string{"203.0.113.1"}},
		{"loopback", nil, []string{"127.0.0.1", "127.0.0.53", "::1", "203.0.113.1"}, []string{"203.0.113.1"}},
		{"VIPs", nil, []string{"192.0.2.2", "2001:db8::2", "192.0.2.3", "203.0.113.1"}, []string{"203.0.113.1"}},
		{"VIPs of the user's list", []string{"192.0.2.2"}, []string{"203.0.113.1"}, nil},
		{"unspecified", nil, []string{"0.0.0.0", "::"}, nil},
		{"repeated, also as IPv6", nil, []string{"203.0.113.1", "::ffff:203.0.113.1", "203.0.113.1"}, []string{"203.0.113.1"}},
		{"more than 15", nil, many, first},
		{"more than 15 with what is left out", nil, append([]string{"127.0.0.1"}, many...), first},
		{"nothing yet", nil, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, n := cluster(), node()
			c.Spec.DNS.Upstreams, n.Upstreams = testkit.Addrs(tt.user...), testkit.Addrs(tt.network...)
			testkit.Equal(t, tt.want, texts(New(c, n).Upstreams))
			text, err := Render(Template, c, n)
			testkit.Must(t, err)
			testkit.Equal(testkit.In(t, tt.want, string(text)), len(tt.want) > 0, strings.Contains(string(text), "forward ."))
		})
	}
}

func TestListen(t *testing.T) {
	c, n := cluster(), node()
	want := []string{"127.0.0.1", "192.0.2.10", "198.51.100.10", "::1", "2001:db8::10"}
	testkit.Equal(t, want, texts(New(c, n).Listen))
	n.NoIPv6 = true
	n.Interfaces[0].Addresses = n.Interfaces[0].Addresses[:1]
	testkit.Equal(t, []string{"127.0.0.1", "192.0.2.10", "198.51.100.10"}, texts(New(c, n).Listen))
	c.Spec.Groups = append(c.Spec.Groups, v1alpha1.Group{Name: "dns", Role: v1alpha1.GroupDNS, VIPs: testkit.Addrs("192.0.2.4")})
	if got := New(c, n).Listen; got != nil {
		t.Errorf("with a DNS VIP: %v", got)
	}
}

// Patterns match only names below a domain (hard case 17).
func TestWildcards(t *testing.T) {
	c := cluster()
	c.Spec.Groups[1].Domains = append(c.Spec.Groups[1].Domains, "blue.example.com")
	c.Spec.DNS.Records = []v1alpha1.DNSRecord{
		{Name: "*.x.example.com", Addresses: testkit.Addrs("2001:db8::9", "192.0.2.9")},
		{Name: "registry.example.com", Addresses: testkit.Addrs("192.0.2.8", "192.0.2.2")},
		{Name: "one.x.example.com", Addresses: testkit.Addrs("192.0.2.7")},
	}
	got := New(c, node())
	var zones []string
	for _, w := range got.Wildcards {
		zones = append(zones, w.Zone)
	}
	testkit.Equal(t, []string{"apps.demo.example.com", "registry.example.com", "one.x.example.com", "blue.example.com", "x.example.com"}, zones)
	if w := got.Wildcards[4]; !slices.Equal(w.A, testkit.Addrs("192.0.2.9")) || !slices.Equal(w.AAAA, testkit.Addrs("2001:db8::9")) {
		t.Errorf("%+v", w)
	}
	testkit.Equal(t, `^one\.x\.example\.com\.$`, got.Wildcards[2].Pattern)
	pattern := regexp.MustCompile(got.Wildcards[0].Pattern)
	for name, want := range map[string]bool{
		"console.apps.demo.example.com.":      true,
		"a.b.apps.demo.example.com.":          true,
		"apps.demo.example.com.":              false,
		".apps.demo.example.com.":             false,
		"console.appsxdemo.example.com.":      false,
		"consoleapps.demo.example.com.":       false,
		"console.apps.demo.example.com.evil.": false,
		"console.apps.demo.example.com":       false,
		"console.apps.demo.example.comx":      false,
	} {
		testkit.Equal(testkit.In(t, name), want, pattern.MatchString(name))
	}
}

// Nodes are known by both of their names, if any; the bootstrap host is not a node, and other
// networks than the machine networks do not count.
func TestNodes(t *testing.T) {
	n := node()
	n.Peers = []v1alpha1.Peer{
		{Name: "w0.demo.example.com", Role: "worker", Addresses: testkit.Addrs("192.0.2.20")},
		{Name: "bootstrap", Role: "bootstrap", Addresses: testkit.Addrs("192.0.2.9")},
		{Name: "host-2", Unnamed: true, Role: "master", Addresses: testkit.Addrs("192.0.2.12")},
		{Name: "m0", Role: "master", Addresses: testkit.Addrs("192.0.2.99")},
		{Name: "m1", Role: "master", Addresses: testkit.Addrs("2001:db8::11", "192.0.2.11")},
	}
	text, err := RenderHosts(HostsTemplate, cluster(), n)
	testkit.Must(t, err)
	want := `# Written by vipgen-agent from the cluster's nodes; changes made here are lost.
192.0.2.10 m0 m0.demo.example.com
192.0.2.11 m1 m1.demo.example.com
192.0.2.20 w0 w0.demo.example.com
2001:db8::10 m0 m0.demo.example.com
2001:db8::11 m1 m1.demo.example.com
`
	testkit.Equal(t, want, string(text))
	if corefile, err := Render(Template, cluster(), n); err != nil || strings.Contains(string(corefile), "host-2") {
		t.Errorf("%v, %s", err, corefile)
	}
}

// A node named like one of the cluster's own names gets none of them.
func TestHardCase40NamesOfTheCluster(t *testing.T) {
	c := cluster()
	c.Spec.Groups = append(c.Spec.Groups, v1alpha1.Group{Name: "api-mgmt", Role: v1alpha1.GroupAPI, VIPs: testkit.Addrs("198.51.100.2"), Names: []string{"api.mgmt.example.net"}})
	c.Spec.DNS.Records = []v1alpha1.DNSRecord{
		{Name: "registry.demo.example.com", Addresses: testkit.Addrs("203.0.113.8")},
		{Name: "*.lab.example.net", Addresses: testkit.Addrs("203.0.113.9")},
	}
	taken := []string{"api", "api-int", "api.demo.example.com", "api-int.demo.example.com", "apps", "x.apps", "console.apps.demo.example.com",
		"demo.example.com", "registry", "api.mgmt.example.net", "a.lab.example.net", "lab.example.net", "localhost"}
	n := node()
	for i, name := range append(taken, "m1", "api.example.net", "api-int2") {
		n.Peers = append(n.Peers, v1alpha1.Peer{Name: name, Role: []string{"worker", "master"}[i%2], Addresses: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, byte(100 + i)})}})
	}
	d := Nodes(c, n)
	slices.Sort(taken)
	testkit.Equal(t, taken, d.Refused)
	for _, h := range d.Hosts {
		for _, name := range h.Names {
			if New(c, n).Answers(name) {
				t.Errorf("%s is %s", name, h.Address)
			}
		}
	}
	if len(d.Hosts) != 3+3 { // the node has an address in the network of each VIP
		t.Errorf("%v", d.Hosts)
	}
	n.Name = "api-int" // of the node itself
	if d := Nodes(c, n); !slices.Contains(d.Refused, "api-int") || slices.ContainsFunc(d.Hosts, func(h Host) bool { return h.Address == testkit.Addrs("192.0.2.10")[0] }) {
		t.Errorf("%v, left out %v", d.Hosts, d.Refused)
	}
}

// If two nodes share a name, it resolves to the control plane's.
func TestHardCase40NamesOfNodes(t *testing.T) {
	n := node()
	n.Peers = []v1alpha1.Peer{
		{Name: "m0.demo.example.com", Role: "worker", Addresses: testkit.Addrs("192.0.2.66")},
		{Name: "m1", Role: "worker", Addresses: testkit.Addrs("192.0.2.67")},
		{Name: "m1.demo.example.com", Role: "master", Addresses: testkit.Addrs("192.0.2.11")},
	}
	for _, h := range Nodes(cluster(), n).Hosts {
		if h.Address == testkit.Addrs("192.0.2.66")[0] || h.Address == testkit.Addrs("192.0.2.67")[0] {
			t.Errorf("%s is %v", h.Address, h.Names)
		}
	}
}

// singleNode is a cluster with one control-plane node and no VIPs.
func singleNode() *v1alpha1.ClusterConfig {
	c := cluster()
	c.Spec.LoadBalancer = v1alpha1.LoadBalancerNone
	for i := range c.Spec.Groups {
		c.Spec.Groups[i].VIPs = nil
	}
	return c
}

// Without VIPs, the names of a single node resolve to the node's own address: one of each
// family, on the default route, else in a machine network.
func TestNamesWithoutVIPs(t *testing.T) {
	routed := node()
	routed.Interfaces[1].DefaultRoute4 = true
	worker := node()
	worker.Name, worker.Role = "w0", v1alpha1.RoleWorker
	worker.Peers = []v1alpha1.Peer{{Name: "w1", Role: v1alpha1.RoleWorker, Addresses: testkit.Addrs("192.0.2.21")}, {Name: "m0", Role: v1alpha1.RoleMaster, Addresses: testkit.Addrs("192.0.2.10")}}
	early := node()
	early.Interfaces = nil
	bootstrap := node()
	bootstrap.Name, bootstrap.Role = "localhost", v1alpha1.RoleBootstrap
	for _, tt := range []struct {
		name string
		node *v1alpha1.Node
		want string
	}{
		{"in the machine networks", node(), "192.0.2.10 2001:db8::10"},
		{"on the default route", routed, "198.51.100.10 2001:db8::10"},
		{"a worker knows the control-plane node as its peer", worker, "192.0.2.10"},
		{"no address yet", early, ""},
		{"the bootstrap phase on the node itself", bootstrap, "192.0.2.10 2001:db8::10"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := New(singleNode(), tt.node)
			var api []netip.Addr
			for _, h := range d.Hosts {
				if slices.Contains(h.Names, "api.demo.example.com") && slices.Contains(h.Names, "api-int.demo.example.com") {
					api = append(api, h.Address)
				}
			}
			testkit.Equal(t, tt.want, strings.Join(texts(api), " "))
			testkit.Equal(t, tt.want, strings.Join(texts(slices.Concat(d.Wildcards[0].A, d.Wildcards[0].AAAA)), " "))
		})
	}
}
