package vrrp

import (
	"slices"
	"testing"
	"time"

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
			testkit.Equal(testkit.In(t, tt.name, term), term.Initial == 1, term.Points == 0)
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

func TestPrefer(t *testing.T) {
	const master, arbiter = v1alpha1.RoleMaster, v1alpha1.RoleArbiter
	full := Health{HAProxy: true, Redirect: true, API: true, MachineConfig: true}
	for _, tt := range []struct {
		what, group, role string
		health            Health
		want              Preference
	}{
		{"all works", "api", master, full, Preferred},
		{"no machine config server", "api", master, Health{HAProxy: true, Redirect: true, API: true}, Second},
		{"which additional VIPs do not need", "api-mgmt", master, Health{HAProxy: true, Redirect: true}, Preferred},
		{"an arbiter balances", "api", arbiter, Health{HAProxy: true, Redirect: true}, Second},
		{"no redirect (hard case 6)", "api", master, Health{HAProxy: true, API: true, MachineConfig: true}, Third},
		{"HAProxy is dead", "api", master, Health{API: true, MachineConfig: true}, Third},
		{"HAProxy restarts", "api", master, Health{API: true, Restarting: true, MachineConfig: true}, Preferred},
		{"no API server is ready (hard case 45)", "api", master, Health{HAProxy: true, Redirect: true, Unready: true, MachineConfig: true}, Last},
		{"nothing", "api", master, Health{MachineConfig: true}, Withdrawn},
		{"the bootstrap", "api", v1alpha1.RoleBootstrap, Health{}, Preferred},
		{"CoreDNS", "dns", master, Health{DNS: true}, Preferred},
		{"no CoreDNS", "dns", master, full, Withdrawn},
		{"own router", "ingress", "worker", Health{RouterAnswers: true, RouterReady: true, RouterHere: true}, Preferred},
		{"own router stops", "ingress", "worker", Health{RouterAnswers: true, RouterHere: true}, Second},
		{"a router, unknown whose", "ingress", "worker", Health{RouterAnswers: true, RouterReady: true}, Third},
		{"it starts", "ingress", "worker", Health{RouterAnswers: true}, Last},
		{"another controller's (hard case 21)", "ingress", "worker", Health{RouterAnswers: true, RouterReady: true, RouterForeign: true}, Withdrawn},
		{"dead, by the API's last answer its own", "ingress", "worker", Health{RouterHere: true}, Withdrawn},
	} {
		role := v1alpha1.GroupAPI
		switch tt.group {
		case "dns":
			role = v1alpha1.GroupDNS
		case "ingress":
			role = v1alpha1.GroupIngress
		}
		g := &v1alpha1.Group{Name: tt.group, Role: role}
		if got := Prefer(g, tt.role, tt.health); got != tt.want || PreferenceWords(g, tt.role, got) == "" {
			t.Errorf("%s: %d, want %d (%q)", tt.what, got, tt.want, PreferenceWords(g, tt.role, got))
		}
	}
}

// The times of RFC 9568 and RFC 3768, section 6.1, derived by hand.
func TestDownInterval(t *testing.T) {
	for _, tt := range []struct {
		version  int
		interval time.Duration
		priority int
		want     time.Duration
	}{
		{3, 40 * time.Millisecond, 68, 149375 * time.Microsecond},
		{3, 200 * time.Millisecond, 80, 737500 * time.Microsecond},
		{2, time.Second, 68, 3734375 * time.Microsecond},
		{2, 2 * time.Second, 68, 6734375 * time.Microsecond},
		{3, time.Second, 0, 4 * time.Second},
	} {
		if got := DownInterval(tt.version, tt.interval, tt.priority); got != tt.want || got > LongestDownInterval(tt.interval) {
			t.Errorf("version %d, %v, priority %d: %v, want %v", tt.version, tt.interval, tt.priority, got, tt.want)
		}
	}
}

// The virtual profile's promise, derived from RFC 9568 section 6.1 for every priority of a
// backup: a holder that stalls just before its next advertisement, and sends it afterwards, is
// in time; a dead one is replaced well within a second.
func TestVirtualToleratesStalls(t *testing.T) {
	most := BootstrapPriority
	for _, role := range []v1alpha1.GroupRole{v1alpha1.GroupAPI, v1alpha1.GroupIngress, v1alpha1.GroupDNS} {
		most = max(most, FullPriority(&v1alpha1.Group{Name: "x", Role: role}, v1alpha1.RoleMaster))
	}
	const interval = v1alpha1.VirtualIntervalMS * time.Millisecond
	for priority := IngressPriority; priority <= most; priority++ {
		down := DownInterval(3, interval, priority)
		if stall := down - interval; stall < (v1alpha1.VirtualStallMS+30)*time.Millisecond {
			t.Errorf("a backup of priority %d takes over from a holder that is paused for %v", priority, stall)
		}
		if down > 800*time.Millisecond {
			t.Errorf("a backup of priority %d waits %v for a dead holder", priority, down)
		}
	}
}

func TestPacedInterval(t *testing.T) {
	for _, tt := range []struct{ ms, receivers, version, want int }{
		{100, 0, 3, 100},
		{100, 2, 3, 100},
		{100, 200, 3, 100},
		{100, 201, 3, 110},
		{100, 2000, 3, 1000},
		{100, 2001, 3, 1010},
		{10, 20, 3, 10},
		{10, 21, 3, 20},
		{1000, 2, 2, 1000},
		{1000, 2000, 2, 1000},
		{1000, 2001, 2, 2000},
		{100, 2, 2, 1000}, // version 2 has whole seconds only
		{105, 1, 3, 110},
	} {
		got := PacedInterval(tt.ms, tt.receivers, tt.version)
		testkit.Equal(testkit.In(t, tt.ms, tt.receivers, tt.version), tt.want, got)
		if tt.receivers*1000 > MaxAdvertsPerSecond*got {
			t.Errorf("%+v: more than %d adverts a second", tt, MaxAdvertsPerSecond)
		}
		testkit.Equal(testkit.In(t, tt, got), "", v1alpha1.AdvertInterval(tt.version, time.Duration(got)*time.Millisecond))
	}
}
