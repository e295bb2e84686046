package coredns

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	template "github.com/vipgen/vipgen/templates/coredns"
)

func testCluster() *v1alpha1.ClusterConfig {
	c := &v1alpha1.ClusterConfig{Metadata: v1alpha1.ClusterMetadata{Name: "demo"}}
	c.Spec = v1alpha1.ClusterConfigSpec{
		Domain:          "demo.example.com",
		MachineNetworks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/64")},
		Groups: []v1alpha1.Group{
			{Name: "api", Role: v1alpha1.GroupAPI, VIPs: testkit.Addrs("192.0.2.5", "2001:db8::5")},
			{Name: "ingress", Role: v1alpha1.GroupIngress, VIPs: testkit.Addrs("192.0.2.6"), Domains: []string{"apps.demo.example.com"}},
		},
		Peers: []v1alpha1.Peer{
			{Name: "master-1.demo.example.com", Role: v1alpha1.RoleMaster, Addresses: testkit.Addrs("192.0.2.11")},
			{Name: "host-3", Unnamed: true, Role: v1alpha1.RoleMaster, Addresses: testkit.Addrs("192.0.2.13")},
			{Name: "boot", Role: v1alpha1.RoleBootstrap, Addresses: testkit.Addrs("192.0.2.9")},
		},
		DNS: v1alpha1.ClusterDNS{Records: []v1alpha1.DNSRecord{{Name: "registry.demo.example.com", Addresses: testkit.Addrs("192.0.2.8")}}},
	}
	return c
}

func testNode(name string) *v1alpha1.Node {
	return &v1alpha1.Node{Name: name, Role: v1alpha1.RoleMaster, Interfaces: []v1alpha1.Interface{
		{Name: "eth0", Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.10/24")}},
	}}
}

// hosts parses lines of the form "name address...".
func hosts(lines ...string) (out []state.Host) {
	for _, line := range lines {
		words := strings.Fields(line)
		out = append(out, state.Host{Name: words[0], Addresses: testkit.Addrs(words[1:]...)})
	}
	return out
}

func lines(peers []v1alpha1.Peer) (out []string) {
	for _, p := range peers {
		line := p.Name
		for _, a := range p.Addresses {
			line += " " + a.String()
		}
		out = append(out, line)
	}
	return out
}

// Any host on the link may answer mDNS: its answers are trusted no further than necessary.
func TestNeighbours(t *testing.T) {
	for _, tt := range []struct{ name, host, want string }{
		{"a node", "master-2 192.0.2.12 2001:db8::12", "master-2 192.0.2.12 2001:db8::12"},
		{"the bootstrap's machine under the name of its node", "master-3 192.0.2.9", "master-3 192.0.2.9"},
		{"outside the machine networks", "master-2 198.51.100.12", ""},
		{"partly outside", "master-2 192.0.2.12 198.51.100.12", "master-2 192.0.2.12"},
		{"no address", "master-2", ""},
		{"a VIP", "master-2 192.0.2.5 192.0.2.6 2001:db8::5", ""},
		{"a VIP besides, as avahi publishes it", "master-2 192.0.2.5 192.0.2.12", "master-2 192.0.2.12"},
		{"this node's name", "master-0 192.0.2.12", ""},
		{"this node's address", "master-2 192.0.2.10", ""},
		{"name of a node in cluster.yaml", "master-1 192.0.2.66", ""},
		{"name of a node in cluster.yaml with its address", "master-1 192.0.2.11 2001:db8::66", ""},
		{"address of a node in cluster.yaml", "master-2 192.0.2.11", ""},
		{"address of a node without a name in cluster.yaml", "master-2 192.0.2.13", "master-2 192.0.2.13"},
		{"the name that cluster.yaml has for such a node", "host-3 192.0.2.66", "host-3 192.0.2.66"},
		{"the bootstrap's name", "boot 192.0.2.66", ""},
		{"the API's name", "api 192.0.2.66", ""},
		{"the API's other name", "api-int 192.0.2.66", ""},
		{"the ingress domain", "apps 192.0.2.66", ""},
		{"a record's name", "registry 192.0.2.66", ""},
		{"localhost", "localhost 192.0.2.66", ""},
		{"capitals", "Master-2 192.0.2.12", ""},
		{"several labels", "a.b 192.0.2.12", ""},
		{"IPv4 as IPv6", "master-2 ::ffff:192.0.2.12", ""},
	} {
		for _, self := range []string{"master-0", "master-0.demo.example.com", "master-0.corp.example.org"} {
			got := strings.Join(lines(neighbours(hosts(tt.host), testCluster(), testNode(self))), ", ")
			testkit.Equal(testkit.In(t, tt.name+" for "+self), tt.want, got)
		}
	}
}

func TestNeighboursAreBounded(t *testing.T) {
	var many []state.Host
	for i := range 1000 {
		h := state.Host{Name: fmt.Sprintf("h%d", i)}
		for low := range 100 {
			h.Addresses = append(h.Addresses, netip.AddrFrom4([4]byte{192, 0, 2, byte(100 + low)}))
		}
		many = append(many, h)
	}
	got := neighbours(many, testCluster(), testNode("master-0"))
	if len(got) != maxNeighbours || len(got[0].Addresses) != maxAddresses {
		t.Errorf("%d nodes with %d addresses each", len(got), len(got[0].Addresses))
	}
}

func TestNeighboursUntilTheAPIListsANode(t *testing.T) {
	for _, tt := range []struct {
		name  string
		list  string // nodes in the API's list; empty without an API server
		lives bool   // whether the mdns job runs
		want  string
	}{
		{"nobody can be asked", "", true, "master-2 192.0.2.12"},
		{"no node is known", "[]", true, "master-2 192.0.2.12"},
		{"this node is registered", "[{name: master-0, role: master, addresses: [192.0.2.10]}]", true, ""},
		{"another is", "[{name: worker-0, role: worker, addresses: [192.0.2.20]}]", true, ""},
		{"the mdns job ended", "[]", false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := t.TempDir()
			writer, err := state.Open(path)
			reader, err2 := state.Open(path)
			if err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			defer reader.Close()
			defer writer.Close()
			testkit.Must(t, writer.Publish(state.MDNS{Hosts: hosts("master-2 192.0.2.12")}))
			if !tt.lives {
				writer.Close()
			}
			source := &facts.Source{Name: "master-0"}
			if tt.list != "" {
				list := filepath.Join(path, "nodes.yaml")
				testkit.WriteFile(t, list, []byte(tt.list))
				source.Nodes = facts.NewFile(list, source.Name, slog.Default())
			}
			job := Job{Source: source, State: reader, Log: slog.Default()}
			got := strings.Join(lines(job.neighbours(testCluster(), testNode("master-0"))), ", ")
			testkit.Equal(t, tt.want, got)
		})
	}
}

// FuzzNeighbours feeds arbitrary neighbours as the mdns job may report them, of unverified
// hosts: the result is valid in the hosts file, and claims no name or VIP of the cluster.
func FuzzNeighbours(f *testing.F) {
	for _, host := range []string{"master-2 192.0.2.12", "api 192.0.2.5", "localhost ::1", "x 192.0.2.10"} {
		data, err := json.Marshal(state.MDNS{Hosts: hosts(host)})
		testkit.Must(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var s state.MDNS
		if json.Unmarshal(data, &s) != nil {
			return // no job writes it
		}
		c, n := testCluster(), testNode("master-0")
		n.Peers = neighbours(s.Hosts, c, n)
		if len(n.Peers) > maxNeighbours {
			t.Fatalf("%d nodes", len(n.Peers))
		}
		cluster := template.New(c, n)
		for _, p := range n.Peers {
			p.Role = "worker" // neighbours report no role
			if err := p.Validate().Err(); err != nil || cluster.Answers(p.Name) || cluster.Answers(p.Name+"."+c.Spec.Domain) {
				t.Errorf("%+v: %v", p, err)
			}
		}
		if _, err := template.RenderHosts(template.HostsTemplate, c, n); err != nil {
			t.Error(err)
		}
	})
}
