package v1alpha1

import (
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

// The first four are from public reports of running clusters.
func TestRouterIDs(t *testing.T) {
	for _, tt := range []struct {
		cluster string
		want    VirtualRouterIDs
	}{
		{"vmware", VirtualRouterIDs{API: 109, Ingress: 124}},
		{"cnf10", VirtualRouterIDs{API: 147, Ingress: 2, DNS: 158}},
		{"cnf11", VirtualRouterIDs{API: 228, Ingress: 147, DNS: 239}},
		{"piyushv6", VirtualRouterIDs{API: 214, Ingress: 21}},
		{"demo-01-rhsys", VirtualRouterIDs{API: 151, Ingress: 22}},
	} {
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

func TestDefault(t *testing.T) {
	c := &VIPConfig{}
	c.Default()
	want := VIPConfigSpec{
		LoadBalancer: LoadBalancer{Type: LoadBalancerInCluster}, VRRP: VRRP{Profile: ProfileFast, Mode: ModeUnicast}, Ports: DefaultPorts,
	}
	testkit.Equal(t, want, c.Spec)
	c.Spec.Ports = Ports{HAProxy: 1}
	c.Spec.VRRP = VRRP{Profile: ProfileCustom, Mode: ModeMulticast}
	c.Default()
	want.Ports.HAProxy = 1
	want.VRRP = VRRP{Profile: ProfileCustom, Mode: ModeMulticast, Version: 3}
	testkit.Equal(t, want, c.Spec)
	for _, p := range c.Spec.Ports.list(&DefaultPorts) {
		if *p.port == 0 {
			t.Errorf("port %s has no default", p.name)
		}
	}
}

func TestAdvertInterval(t *testing.T) {
	for _, tt := range []struct {
		version int
		d       time.Duration
		ok      bool
	}{
		{3, 0, false}, {3, -10 * time.Millisecond, false}, {3, 9 * time.Millisecond, false},
		{3, 10 * time.Millisecond, true}, {3, 15 * time.Millisecond, false}, {3, 40950 * time.Millisecond, true},
		{3, 40960 * time.Millisecond, false}, {2, 999 * time.Millisecond, false}, {2, time.Second, true},
		{2, 1500 * time.Millisecond, false}, {2, 255 * time.Second, true}, {2, 256 * time.Second, false},
	} {
		testkit.Equal(testkit.In(t, tt.version, tt.d), tt.ok, AdvertInterval(tt.version, tt.d) == "")
	}
}
