package verify

import (
	"net/netip"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

// TestRouted: the preferences of nodes hold for every group, and a node that lies is found.
func TestRouted(t *testing.T) {
	node := func(name, role string) Node { return Node{Facts: &v1alpha1.Node{Name: name, Role: role}} }
	masters := []Node{node("a", v1alpha1.RoleMaster), node("b", v1alpha1.RoleMaster), node("c", v1alpha1.RoleMaster)}
	workers := []Node{node("x", v1alpha1.RoleWorker), node("y", v1alpha1.RoleWorker)}
	vips := []netip.Addr{netip.MustParseAddr("198.51.100.5")}
	for name, s := range map[string]*Setup{
		"API":               {Group: v1alpha1.Group{Name: "api", Role: v1alpha1.GroupAPI, VIPs: vips}, Nodes: masters},
		"bootstrap":         {Group: v1alpha1.Group{Name: "api", Role: v1alpha1.GroupAPI, VIPs: vips}, Nodes: append(masters[:2:2], node("boot", v1alpha1.RoleBootstrap))},
		"more API VIPs":     {Group: v1alpha1.Group{Name: "api-mgmt", Role: v1alpha1.GroupAPI, VIPs: vips}, Nodes: masters},
		"an arbiter":        {Group: v1alpha1.Group{Name: "api", Role: v1alpha1.GroupAPI, VIPs: vips}, Nodes: append(masters[:2:2], node("arb", v1alpha1.RoleArbiter))},
		"DNS":               {Group: v1alpha1.Group{Name: "dns", Role: v1alpha1.GroupDNS, VIPs: vips}, Nodes: masters},
		"routes":            {Group: v1alpha1.Group{Name: "ingress", Role: v1alpha1.GroupIngress, VIPs: vips}, Nodes: workers},
		"more routers":      {Group: v1alpha1.Group{Name: "ingress", Role: v1alpha1.GroupIngress, VIPs: vips}, Nodes: workers, Several: true},
		"one node for them": {Group: v1alpha1.Group{Name: "ingress", Role: v1alpha1.GroupIngress, VIPs: vips}, Nodes: workers[:1]},
	} {
		if p := s.proveRouted(); p.Counterexample != nil || p.Combinations < 10 {
			t.Errorf("%s: %d combinations, %+v", name, p.Combinations, p.Counterexample)
		}
	}
	s := &Setup{Group: v1alpha1.Group{Name: "api", Role: v1alpha1.GroupAPI, VIPs: vips}}
	testkit.Equal(t, "no node can announce it", s.proveRouted().Counterexample.Why)
	s.Nodes = masters[:2]
	dead := effects(&s.Group, v1alpha1.RoleMaster, controlPlaneKind)
	working, broken := dead[0], dead[0]
	broken.qualities[1] = quality{words: "nothing"}
	c := s.judgeRouted([]*kind{controlPlaneKind, controlPlaneKind}, []effect{working, broken})
	testkit.Equal(t, announced, c.Check)
	testkit.Equal(t, []string{"a", "b"}, c.Holders)
	broken.prefers[1] = -1
	if c := s.judgeRouted([]*kind{controlPlaneKind, controlPlaneKind}, []effect{working, broken}); c != nil {
		t.Errorf("a node that withdraws: %+v", c)
	}
}
