package vrrp

import (
	"slices"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

// The sums of DESIGN section 6, on which the whole election relies.
func TestPriorities(t *testing.T) {
	tests := []struct {
		name   string
		group  v1alpha1.GroupRole
		role   string
		base   int
		points []int
	}{
		{"API, bootstrap", v1alpha1.GroupAPI, "bootstrap", 70, nil},
		{"API, control plane", v1alpha1.GroupAPI, "master", 40, []int{20, 5, 3}},
		{"API, arbiter", v1alpha1.GroupAPI, "arbiter", 40, []int{20, 5, 3}},
		{"DNS, control plane", v1alpha1.GroupDNS, "master", 40, []int{20}},
		{"ingress, worker", v1alpha1.GroupIngress, "worker", 20, []int{10, 50, 0}},
		{"ingress, control plane", v1alpha1.GroupIngress, "master", 20, []int{10, 50, 0}},
	}
	names := map[string]bool{}
	for _, tt := range tests {
		base, terms := PriorityTerms(&v1alpha1.Group{Name: "g", Role: tt.group}, tt.role)
		var points []int
		most := FullPriority(&v1alpha1.Group{Name: "g", Role: tt.group}, tt.role)
		for _, term := range terms {
			points = append(points, term.Points)
			names[term.Name] = true
			if (term.Points == 0) != (term.Initial == 1) {
				t.Errorf("%s: %+v: a veto holds from the start, points do not", tt.name, term)
			}
		}
		if base != tt.base || !slices.Equal(points, tt.points) {
			t.Errorf("%s: %d %v, want %d %v", tt.name, base, points, tt.base, tt.points)
		}
		if most > HighestPriority {
			t.Errorf("%s: %d is more than VRRP has for those that do not own the address (RFC 9568 section 5.2.4)", tt.name, most)
		}
	}
	most := FullPriority(&v1alpha1.Group{Role: v1alpha1.GroupAPI}, "master")
	if most != 68 || most >= BootstrapPriority {
		t.Errorf("a control-plane node reaches %d, the bootstrap has %d", most, BootstrapPriority)
	}
}

// After a crash of HAProxy the path counts as open while the node serves; nothing else opens it
// without HAProxy and the redirect.
func TestPath(t *testing.T) {
	for _, tt := range []struct {
		health Health
		want   bool
	}{
		{Health{}, false},
		{Health{HAProxy: true, Redirect: true}, true},
		{Health{HAProxy: true, Redirect: true, Unready: true}, false},
		{Health{HAProxy: true, API: true}, false},
		{Health{Redirect: true, API: true}, false},
		{Health{API: true}, false},
		{Health{Restarting: true}, false},
		{Health{Restarting: true, HAProxy: true}, false},
		{Health{Restarting: true, API: true}, true},
		{Health{Restarting: true, Redirect: true}, true},
		{Health{Restarting: true, API: true, Unready: true}, false},
	} {
		testkit.Equal(t, tt.want, tt.health.path())
	}
}
