package v1alpha1

import (
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// The first four are from public reports of running clusters.
func TestRouterIDs(t *testing.T) {
	tests := []struct {
		cluster string
		want    VirtualRouterIDs
	}{
		{"vmware", VirtualRouterIDs{API: 109, Ingress: 124}},
		{"cnf10", VirtualRouterIDs{API: 147, Ingress: 2, DNS: 158}},
		{"cnf11", VirtualRouterIDs{API: 228, Ingress: 147, DNS: 239}},
		{"piyushv6", VirtualRouterIDs{API: 214, Ingress: 21}},
		{"demo-01-rhsys", VirtualRouterIDs{API: 151, Ingress: 22}},
	}
	for _, tt := range tests {
		got := RouterIDs(tt.cluster)
		if tt.want.DNS == 0 {
			got.DNS = 0
		}
		testkit.Equal(testkit.In(t, tt.cluster), tt.want, got)
	}
}

// VRRP can carry the ID of any text.
func FuzzRouterID(f *testing.F) {
	f.Add("vmware-api")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		if id := RouterID(text); id < 1 || id > 255 {
			t.Errorf("RouterID(%q) = %d", text, id)
		}
	})
}
