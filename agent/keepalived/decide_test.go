package keepalived

import (
	"net/netip"
	"testing"

	"github.com/vipgen/vipgen/agent/trackfile"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/templates/keepalived"
)

func TestInstances(t *testing.T) {
	vip := netip.MustParsePrefix("192.0.2.2/32")
	_, api := vrrp.PriorityTerms(&v1alpha1.Group{Name: "api", Role: v1alpha1.GroupAPI}, "master")
	_, ingress := vrrp.PriorityTerms(&v1alpha1.Group{Name: "ingress", Role: v1alpha1.GroupIngress}, "worker")
	tests := []struct {
		name     string
		conf     keepalived.Conf
		on       []string
		held     []netip.Addr
		priority int
		fault    bool
	}{
		{"nothing works", keepalived.Conf{Instances: []keepalived.Instance{{Name: "a", Priority: 40, VIP: vip, Terms: api}}}, nil, nil, 40, false},
		{"all works", keepalived.Conf{Instances: []keepalived.Instance{{Name: "a", Priority: 40, VIP: vip, Terms: api}}}, []string{"lb-path", "lb-or-api", "machine-config"}, []netip.Addr{vip.Addr()}, 68, false},
		{"in a sync group", keepalived.Conf{Instances: []keepalived.Instance{{Name: "a", Priority: 40, VIP: vip}},
			SyncGroups: []keepalived.SyncGroup{{Name: "g", Members: []string{"a", "b"}, Terms: api}}}, []string{"lb-path"}, nil, 60, false},
		{"a veto", keepalived.Conf{Instances: []keepalived.Instance{{Name: "a", Priority: 20, VIP: vip, Terms: ingress}}}, []string{"ingress-away"}, nil, 20, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var values []trackfile.Value
			for _, name := range tt.on {
				values = append(values, trackfile.Value{Name: name, Value: 1})
			}
			got := instanceStates(&tt.conf, values, tt.held)[0]
			want := []any{tt.priority, tt.fault, len(tt.held) > 0}
			testkit.Equal(t, want, []any{got.Priority, got.Fault, got.Holds})
		})
	}
}
