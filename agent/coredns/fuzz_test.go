package coredns

import (
	"encoding/json"
	"testing"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/testkit"
	template "github.com/vipgen/vipgen/templates/coredns"
)

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
