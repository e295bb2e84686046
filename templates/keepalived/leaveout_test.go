package keepalived

import (
	"strings"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// Instances are left out with those of their sync group, and with the files that only they track.
func TestLeaveOut(t *testing.T) {
	const api, ingress, why = "lb-path lb-or-api machine-config", "ingress-ready ingress-here ingress-away", vrrp.LeftOutMismatch
	tests := []struct{ name, leave, instances, groups, files, idle string }{
		{"none", "", "demo_API_0 demo_API_1 demo_INGRESS_0 demo_INGRESS_1", "demo_API", api + " " + ingress, ""},
		{"one", "demo_INGRESS_1", "demo_API_0 demo_API_1 demo_INGRESS_0", "demo_API", api + " " + ingress, "demo_INGRESS_1"},
		{"a group", "demo_INGRESS_0 demo_INGRESS_1", "demo_API_0 demo_API_1", "demo_API", api, "demo_INGRESS_0 demo_INGRESS_1"},
		{"one of a sync group", "demo_API_1", "demo_INGRESS_0 demo_INGRESS_1", "", ingress, "demo_API_0 demo_API_1"},
		{"all", "demo_API_1 demo_INGRESS_0 demo_INGRESS_1", "", "", "", ""},
	}
	for _, tt := range tests {
		k := New(cluster(func(s *v1alpha1.ClusterConfigSpec) {
			s.ControlPlane.Schedulable, s.Groups[0].Together = true, true
		}), node("master", 10, "master:11"))
		k.LeaveOut(strings.Fields(tt.leave), why)
		var groups, files, idle []string
		for _, g := range k.SyncGroups {
			groups = append(groups, g.Name)
		}
		for _, f := range k.TrackFiles {
			files = append(files, f.Name)
		}
		for _, name := range strings.Fields(tt.idle) {
			idle = append(idle, name+": "+why.Text())
		}
		if tt.instances == "" {
			idle = []string{why.Text()}
		}
		in := testkit.In(t, tt.name)
		testkit.Equal(in, tt.instances, strings.Join(instances(k), " "))
		testkit.Equal(in, tt.groups, strings.Join(groups, " "))
		testkit.Equal(in, tt.files, strings.Join(files, " "))
		testkit.Equal(in, idle, k.Idle)
	}
}
