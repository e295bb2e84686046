package gate

import (
	"errors"
	"net/netip"
	"runtime/pprof"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

// Each group has its own redirect: a missing one does not affect the others.
func TestRedirectOfEachGroup(t *testing.T) {
	first, second := netip.MustParseAddr("192.0.2.5"), netip.MustParseAddr("2001:db8::5")
	more := netip.MustParseAddr("192.0.2.17")
	api := &v1alpha1.Group{Name: "api", Role: v1alpha1.GroupAPI, VIPs: []netip.Addr{first, second}}
	mgmt := &v1alpha1.Group{Name: "api-mgmt", Role: v1alpha1.GroupAPI, VIPs: []netip.Addr{more}}
	for _, tt := range []struct {
		what      string
		fw        *state.Firewall
		err       error
		api, mgmt bool
	}{
		{"all", &state.Firewall{InPlace: true, VIPs: []netip.Addr{first, second, more}}, nil, true, true},
		{"a VIP is new", &state.Firewall{InPlace: true, VIPs: []netip.Addr{first, second}}, nil, true, false},
		{"one family is missing", &state.Firewall{InPlace: true, VIPs: []netip.Addr{first, more}}, nil, false, true},
		{"withdrawn", &state.Firewall{VIPs: []netip.Addr{first, second, more}}, nil, false, false},
		{"the job does not run", nil, nil, false, false},
		{"not readable", nil, errors.New("half a file"), false, false},
	} {
		for g, want := range map[*v1alpha1.Group]bool{api: tt.api, mgmt: tt.mgmt} {
			f := redirect(g, tt.fw, tt.err)
			if f.OK != want || f.OK == (f.Why != "") {
				t.Errorf("%s: %+v", tt.what, f)
			}
		}
	}
	if a, b := redirect(api, &state.Firewall{}, nil).Name, redirect(mgmt, &state.Firewall{}, nil).Name; a != "redirect" || b != "api-mgmt-redirect" {
		t.Errorf("facts %s and %s", a, b)
	}
}

// A recent crash of HAProxy counts for as long as the firewall job publishes it.
func TestRestarting(t *testing.T) {
	dir, err := state.Open(t.TempDir())
	testkit.Must(t, err)
	defer dir.Close()
	r := &redirects{dir: dir, board: health.NewBoard(), groups: []v1alpha1.Group{{Name: "api", Role: v1alpha1.GroupAPI}}}
	for _, want := range []bool{false, true, false} {
		testkit.Must(t, dir.Publish(state.Firewall{InPlace: !want, Restarting: want}))
		r.poll()
		crashed, _ := r.board.Get(health.FactRestarting)
		redirect, _ := r.board.Get(health.FactRedirect)
		if crashed.OK != want || redirect.OK == want {
			t.Errorf("%+v, %+v; HAProxy crashed: %t", crashed, redirect, want)
		}
	}
}

// The facts of a removed group are dropped, also those that a poll in progress still sets.
func TestRedirectOfGroupThatGoes(t *testing.T) {
	c := testChecks(t, t.TempDir())
	defer c.Stop()
	first := v1alpha1.Group{Name: "api", Role: v1alpha1.GroupAPI, Instance: "demo_API", VirtualRouterID: 79}
	more := v1alpha1.Group{Name: "api-mgmt", Role: v1alpha1.GroupAPI, Instance: "demo_API_mgmt", VirtualRouterID: 80}
	spec := func(groups ...v1alpha1.Group) *v1alpha1.ClusterConfigSpec {
		return &v1alpha1.ClusterConfigSpec{Ports: v1alpha1.DefaultPorts, Groups: groups}
	}
	c.Board.Notify = func(f state.Fact) {
		if strings.HasSuffix(f.Name, health.FactRedirect) && c.redirects.mu.TryLock() {
			t.Errorf("%s is set without the lock of the groups", f.Name)
			c.redirects.mu.Unlock()
		}
	}
	testkit.Must(t, c.Follow(spec(first, more), v1alpha1.RoleMaster, nil))
	c.redirects.mu.Lock() // as a poll that has read the groups
	ended := make(chan error)
	go func() { ended <- c.Follow(spec(first), v1alpha1.RoleMaster, nil) }()
	testkit.Await(t, "the change to wait for the poll", func() bool {
		var stacks strings.Builder
		testkit.Must(t, pprof.Lookup("goroutine").WriteTo(&stacks, 2))
		return strings.Contains(stacks.String(), "(*redirects).follow(")
	})
	c.Board.Set(redirect(&more, nil, nil))
	c.redirects.mu.Unlock()
	testkit.Must(t, <-ended)
	for _, f := range c.Board.Facts() {
		if strings.Contains(f.Name, more.Name) {
			t.Errorf("%+v is known of a group that is gone", f)
		}
	}
}
