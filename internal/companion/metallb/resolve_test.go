package metallb

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/testkit/clusters"
)

// Requests and clusters that the golden files do not cover.
func TestResolve(t *testing.T) {
	node := []string{"192.168.111.20", "192.168.111.21", "192.168.111.22"}
	tests := []struct {
		name string
		q    Request
		want string // codes of the report
		has  string // part of the objects
		not  string
	}{
		{"router of the cluster's own AS, elsewhere", Request{Addresses: []string{"203.0.113.17"}, ASN: 64500, Peers: []string{"198.51.100.1=64500"}, Nodes: node}, "", "peerASN: 64500", "ebgpMultiHop"},
		{"router of another AS, elsewhere", Request{Addresses: []string{"203.0.113.17"}, ASN: 64500, Peers: []string{"198.51.100.1=64501"}, Nodes: node}, "", "ebgpMultiHop: true", "nodeSelectors"},
		{"routers of some nodes", Request{Addresses: []string{"203.0.113.17"}, ASN: 64500, Peers: []string{"192.168.111.1=64501"}, Nodes: node, NodeLabels: []string{"a=b"}}, "", "nodeSelectors", "ebgpMultiHop"},
		{"4 byte AS number", Request{Addresses: []string{"203.0.113.17"}, ASN: 4200000000, Peers: []string{"192.168.111.1=4200000001"}, Nodes: node}, "", "myASN: 4200000000\n  peerASN: 4200000001", ""},
		{"last address of the network", Request{Addresses: []string{"192.168.111.255"}, Nodes: node}, "bad-address", "", ""},
		{"outside of the network", Request{Addresses: []string{"203.0.113.17"}, Nodes: node}, "warning vip-outside-network", "L2Advertisement", ""},
		{"outside of the network, by an interface", Request{Addresses: []string{"203.0.113.17"}, Nodes: node, Interfaces: []string{"ens5.100"}}, "", "interfaces:\n  - ens5.100", ""},
		{"a node with two addresses of a family", Request{Addresses: []string{"192.168.111.17"}, Nodes: []string{"a=192.168.111.20,192.168.111.120", "b=192.168.111.21", "c=192.168.111.22"}}, "", "192.168.111.20", "192.168.111.120"},
		{"label that is a word in YAML", Request{Addresses: []string{"192.168.111.17"}, Namespace: "a", Selector: []string{"on=1"}, NodeLabels: []string{"no=1"}}, "", `"no": "1"`, "true:"},
		{"label without a value", Request{Addresses: []string{"192.168.111.17"}, Nodes: node, NodeLabels: []string{"node-role.kubernetes.io/infra="}}, "", `node-role.kubernetes.io/infra: ""`, ""},
		{"a wildcard that covers api-int", Request{Addresses: []string{"192.168.111.17"}, Nodes: node, Hostnames: []string{"*.demo.example.com"}}, "bad-name", "", ""},
		{"a word that is none in YAML", Request{Addresses: []string{"192.168.111.17"}, Nodes: node, Name: "no", Pool: "on", Namespace: "null"}, "", "name: \"no\"", ""},
		{"IPv4 written as IPv6", Request{Addresses: []string{"::ffff:192.168.111.17"}, Nodes: node}, "bad-address", "", ""},
	}
	c := clusters.Folder(t, "../../../golden/cases/baremetal-ipi")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			plan, list := Resolve(c, tt.q)
			var got []string
			for _, p := range list {
				word := string(p.Code)
				if p.Severity == problem.Warning {
					word = "warning " + word
				}
				got = append(got, word)
			}
			if strings.Join(slices.Compact(got), ", ") != tt.want {
				t.Fatalf("report %v", list)
			}
			if plan == nil {
				return
			}
			objects, err := plan.Objects()
			testkit.Must(t, err)
			all := ""
			for _, o := range objects {
				var named struct {
					Metadata struct{ Name, Namespace string }
				}
				if err := yaml.UnmarshalStrict(o.Data, &named); err != nil && !strings.Contains(err.Error(), "unknown field") || named.Metadata.Name == "" || named.Metadata.Namespace == "" {
					t.Errorf("%v: %+v\n%s", err, named, o.Data)
				}
				all += string(o.Data)
			}
			if !strings.Contains(all, tt.has) || tt.not != "" && strings.Contains(all, tt.not) {
				t.Errorf("want %q, not %q in\n%s", tt.has, tt.not, all)
			}
		})
	}
}

// The nodes of agent-config.yaml that run API servers are the endpoints of the Service.
func TestKnownNodes(t *testing.T) {
	plan, list := Resolve(clusters.Folder(t, "../../../golden/cases/baremetal-agent"), Request{Addresses: []string{"192.168.111.17"}})
	testkit.Must(t, list.Err())
	var got []string
	for _, e := range plan.params.Endpoints("") {
		got = append(got, e.Address.String())
	}
	testkit.Equal(t, []string{"192.168.111.20", "192.168.111.21", "192.168.111.22"}, got)
}
