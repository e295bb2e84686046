package coredns

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

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
