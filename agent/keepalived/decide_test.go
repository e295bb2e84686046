package keepalived

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vipgen/vipgen/agent/track"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/templates/keepalived"
)

func peer(name, role, address string) v1alpha1.Peer {
	return v1alpha1.Peer{Name: name, Role: role, Addresses: []netip.Addr{netip.MustParseAddr(address)}}
}

func TestMerge(t *testing.T) {
	listed := []v1alpha1.Peer{peer("cp-1", "master", "192.0.2.1"), peer("cp-2", "master", "192.0.2.2")}
	tests := []struct {
		name  string
		known v1alpha1.Peer
		added bool
	}{
		{"not listed yet", peer("cp-3", "master", "192.0.2.3"), true},
		{"this node itself", peer("self", "master", "192.0.2.9"), false},
		{"listed, with another address by now", peer("cp-1", "master", "192.0.2.8"), false},
		{"listed under another name", peer("host-2", "master", "192.0.2.2"), false},
		{"the bootstrap", peer("bootstrap", "bootstrap", "192.0.2.5"), true},
		{"the bootstrap, which is a node too", peer("bootstrap", "bootstrap", "192.0.2.1"), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var names []string
			for _, p := range merge("self", listed, []v1alpha1.Peer{tt.known}) {
				names = append(names, p.Name)
			}
			want := []string{"cp-1", "cp-2"}
			if tt.added {
				want = append(want, tt.known.Name)
			}
			if !slices.Equal(names, want) {
				t.Errorf("%v, want %v", names, want)
			}
		})
	}
}

func TestInstances(t *testing.T) {
	vip := netip.MustParsePrefix("192.0.2.2/32")
	_, api := keepalived.Terms(&v1alpha1.Group{Name: "api", Role: v1alpha1.GroupAPI}, "master")
	_, ingress := keepalived.Terms(&v1alpha1.Group{Name: "ingress", Role: v1alpha1.GroupIngress}, "worker")
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
			var values []track.Value
			for _, name := range tt.on {
				values = append(values, track.Value{Name: name, Value: 1})
			}
			got := instances(&tt.conf, values, tt.held)[0]
			want := []any{tt.priority, tt.fault, len(tt.held) > 0}
			if diff := cmp.Diff(want, []any{got.Priority, got.Fault, got.Holds}); diff != "" {
				t.Error(diff)
			}
		})
	}
}
