package bench

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab"
	"github.com/vipgen/vipgen/lab/testbed/watch"
)

func TestChoose(t *testing.T) {
	all := Scenarios(time.Minute)
	names := map[string]bool{}
	for _, s := range all {
		if names[s.Name] || s.Title == "" || s.What == "" || s.happens == nil {
			t.Errorf("scenario %q is a duplicate, or has no description", s.Name)
		}
		names[s.Name] = true
	}
	some, err := Choose(all, []string{"planned-stop", "power-loss"})
	if err != nil || len(some) != 2 || some[0].Name != "power-loss" {
		t.Errorf("chosen: %v, %v", some, err)
	}
	_, err = Choose(all, []string{"power-los"})
	testkit.Fails(t, err, `"power-los": there are power-loss, backend-power-loss, link-down`)
}

// Scenarios of the holder are not those of nodes that announce.
func TestMissing(t *testing.T) {
	demo, err := lab.Demo()
	testkit.Must(t, err)
	racks, err := lab.Racks()
	testkit.Must(t, err)
	cfg := &Config{Cluster: demo, Racks: racks}
	var some []string
	for _, s := range Scenarios(time.Minute) {
		testkit.Equal(testkit.In(t, s.Name), "", s.missing(&Config{Cluster: demo}, Profile{}))
		if s.missing(cfg, Profile{Routed: true}) == "" {
			some = append(some, s.Name)
		}
	}
	testkit.Equal(t, "[power-loss link-down haproxy-crash haproxy-hang api-crash api-restart planned-stop node-returns router-gone rolling-restart]", fmt.Sprint(some))
}

// For any number of runs, their moments are spaced apart.
func TestPhase(t *testing.T) {
	for runs := 2; runs <= 20; runs++ {
		var list []float64
		for i := range runs {
			list = append(list, phase(1, 3, i))
		}
		slices.Sort(list)
		for i, p := range list {
			if p < 0 || p >= 1 || i > 0 && p-list[i-1] < 0.3/float64(runs) {
				t.Fatalf("of %d runs, these are close: %v", runs, list)
			}
		}
	}
	if phase(1, 2, 3) != phase(1, 2, 3) || phase(1, 2, 3) == phase(2, 2, 3) {
		t.Error("the seed does not decide")
	}
}

// Without room for all clusters, each profile has all of its runs in a row.
func TestTurns(t *testing.T) {
	b := &bench{cfg: &Config{Runs: 2, Profiles: make([]Profile, 2)}, room: 1}
	testkit.Equal(t, "[{0 0} {1 0} {0 1} {1 1}]", fmt.Sprint(b.turns(2)))
}

func TestEffective(t *testing.T) {
	const dump = ` VRRP Instance = demo_API_0
   VRRP Version = 2
   State = BACKUP
   Priority = 40
   Effective priority = 68
 VRRP Instance = demo_INGRESS_0
   State = FAULT
   Effective priority = 30
`
	for instance, want := range map[string]int{"demo_API_0": 68, "demo_INGRESS_0": 0, "demo": 0} {
		testkit.Equal(testkit.In(t, instance), want, effective(dump, instance))
	}
}

func TestOverlap(t *testing.T) {
	vip, other := netip.MustParseAddr("192.0.2.5"), netip.MustParseAddr("192.0.2.6")
	ms := time.Millisecond
	timeline := watch.Timeline{
		{View: watch.Addresses, VIP: vip, Node: "a", From: 0, To: 100 * ms},
		{View: watch.Addresses, VIP: vip, Node: "b", From: 60 * ms, To: 200 * ms},
		{View: watch.Addresses, VIP: vip, Node: "a", From: 195 * ms, To: 300 * ms}, // briefly
		{View: watch.Addresses, VIP: other, Node: "c", From: 0, To: 300 * ms},
		{View: watch.Capture, VIP: vip, Node: "c", From: 0, To: 300 * ms},
	}
	for from, want := range map[time.Duration]time.Duration{0: 40 * ms, 70 * ms: 30 * ms, 95 * ms: 0} {
		testkit.Equal(testkit.In(t, from), want, overlap(timeline, from))
	}
	testkit.Equal(t, 2, moves(timeline))
}
