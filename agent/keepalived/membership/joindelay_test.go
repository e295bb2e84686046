package membership

import (
	"fmt"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

func TestJoinDelay(t *testing.T) {
	type step struct {
		at           time.Duration
		unregistered bool
		want         time.Duration
		stale        bool
	}
	strangers := func(until time.Duration) func(time.Duration) linkState {
		return func(at time.Duration) linkState {
			if at < until {
				return unknownTo
			}
			return unheld
		}
	}
	always := func(v linkState) func(time.Duration) linkState { return func(time.Duration) linkState { return v } }
	s := time.Second
	for _, tt := range []struct {
		name  string
		known bool
		link  func(time.Duration) linkState
		steps []step
	}{
		{"new", false, strangers(0), []step{{0, true, 0, false}, {1 * s, false, 7 * s, false}, {4 * s, false, 4 * s, false}, {8 * s, false, 0, false}, {9 * s, false, 0, false}}},
		{"new, listed before the agent started", false, strangers(0), []step{{0, false, 7 * s, false}, {7 * s, false, 0, false}}},
		{"known, the list not read yet", true, strangers(0), []step{{0, true, 0, false}, {1 * s, false, 0, false}}},
		{"known, removed and back", true, strangers(0), []step{{0, false, 0, false}, {1 * s, true, 0, false}, {2 * s, true, 0, false}, {3 * s, false, 7 * s, false}, {10 * s, false, 0, false}}},
		{"removed while it waits", false, strangers(0), []step{{0, false, 7 * s, false}, {5 * s, true, 0, false}, {6 * s, false, 7 * s, false}}},
		{"the holder learns of it", false, strangers(9 * s), []step{{0, false, 7 * s, false}, {7 * s, false, 1 * s, false}, {8 * s, false, 1 * s, false}, {9 * s, false, 0, false}, {10 * s, false, 0, false}}},
		{"the holder never does", false, strangers(time.Hour), []step{{0, false, 7 * s, false}, {16 * s, false, 1 * s, false}, {17 * s, false, 0, false}}},
		// No API server has confirmed the list since the start (hard case 36).
		{"known, stale, no node holds the VIP, or the holder knows the node", true, strangers(0), []step{{0, false, 0, true}, {1 * s, false, 0, true}}},
		{"known, stale, the holder does not know it", true, strangers(9 * s), []step{{0, false, doubtTime, true}, {10 * s, false, doubtTime, true}}},
		{"... adverts of the holder come", true, func(at time.Duration) linkState {
			switch {
			case at < 4*s:
				return unknownTo
			case at < 8*s:
				return unheld // for a moment
			}
			return knownTo
		}, []step{{0, false, doubtTime, true}, {5 * s, false, doubtTime, true}, {10 * s, false, 7 * s, true}, {17 * s, false, 0, true}}},
		{"known, stale, adverts of the holder come at once", true, always(knownTo), []step{{0, false, 0, true}}},
		{"new, stale, adverts of the holder come", false, always(knownTo), []step{{0, false, 7 * s, true}, {7 * s, false, 0, true}}},
		{"... who goes, and nobody comes", true, strangers(9 * s), []step{{0, false, doubtTime, true}, {10 * s, false, doubtTime, true},
			{65 * s, false, doubtTime, true}, {70 * s, false, 0, true}, {75 * s, false, 0, true}}},
		{"... who goes, and comes again", true, func(at time.Duration) linkState {
			if at < 9*s || at >= 40*s && at < 50*s {
				return unknownTo
			}
			return unheld
		}, []step{{0, false, doubtTime, true}, {10 * s, false, doubtTime, true}, {45 * s, false, doubtTime, true},
			{70 * s, false, doubtTime, true}, {100 * s, false, doubtTime, true}, {130 * s, false, 0, true}}},
		{"... an API server lists it", true, strangers(9 * s), []step{{0, false, doubtTime, true}, {10 * s, false, 7 * s, false}, {17 * s, false, 0, false}}},
		{"... an API server does not", true, strangers(time.Hour), []step{{0, false, doubtTime, true}, {10 * s, true, 0, false}, {20 * s, true, 0, true}}},
		{"new, stale, the holder does not know it", false, strangers(time.Hour), []step{{0, false, doubtTime, true}, {20 * s, false, doubtTime, true}}},
		{"new, stale, no node holds the VIP", false, strangers(0), []step{{0, false, 7 * s, true}, {7 * s, false, 0, true}}},
		// The API becomes unreachable later (hard case 19).
		{"known, vouched for before", true, strangers(time.Hour), []step{{0, false, 0, false}, {1 * s, false, 0, true}, {time.Hour, false, 0, true}}},
		{"known, stale at first", true, strangers(0), []step{{0, false, 0, true}, {1 * s, false, 0, false}, {2 * s, false, 0, true}}},
		{"known, the holder does not", true, strangers(time.Hour), []step{{0, false, 0, false}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := joinDelay{known: tt.known}
			began := time.Now()
			for _, step := range tt.steps {
				if got := a.wait(began.Add(step.at), step.unregistered, step.stale, func() linkState { return tt.link(step.at) }); got != step.want {
					t.Fatalf("after %v: %v, want %v", step.at, got, step.want)
				}
			}
		})
	}
}

// TestSuspect: a node whose VIP is also held by another host becomes uncertain again.
func TestSuspect(t *testing.T) {
	a, now := joinDelay{known: true}, time.Now()
	never := func() linkState { t.Fatal("the link is polled"); return undetermined }
	if got := a.wait(now, false, false, never); got != 0 {
		t.Fatalf("%v while an API server lists it", got)
	}
	a.suspect()
	testkit.Equal(t, doubtTime, a.wait(now, false, true, func() linkState { return unknownTo }))
	testkit.Equal(t, joinTime, a.wait(now.Add(doubtTime), false, true, func() linkState { return knownTo }))
	a.suspect()
	testkit.Equal(t, joinTime, a.wait(now.Add(time.Minute), false, false, never))
}

// A node that joins peers with OpenShift's own keepalived waits until each of them has sent
// advertisements to it, or for longer than their monitors may take.
func TestHardCase49JoinDelay(t *testing.T) {
	one := v1alpha1.Peer{Name: "master-1", Role: "master", Addresses: testkit.Addrs("192.0.2.11", "2001:db8::11")}
	two := v1alpha1.Peer{Name: "master-2", Role: "master", Addresses: testkit.Addrs("192.0.2.12")}
	type step struct {
		at   time.Duration
		want time.Duration
	}
	type peers = []v1alpha1.Peer
	s := time.Second
	for name, tt := range map[string]struct {
		operators func(at time.Duration) peers
		senders   []string
		nodes     func(at time.Duration) peers // nil: one and two
		link      linkState
		steps     []step
	}{
		"silent backups": {func(time.Duration) peers { return peers{one, two} }, nil, nil, unheld,
			[]step{{0, 7 * s}, {7 * s, 5 * s}, {29 * s, 5 * s}, {42 * s, 3 * s}, {45 * s, 0}}},
		"all have sent adverts": {func(time.Duration) peers { return peers{one, two} }, []string{"2001:db8::11", "192.0.2.12"}, nil, knownTo,
			[]step{{0, 7 * s}, {7 * s, 0}}},
		"one of two has": {func(time.Duration) peers { return peers{one, two} }, []string{"192.0.2.11"}, nil, knownTo,
			[]step{{7 * s, 7 * s}, {14 * s, 5 * s}, {45 * s, 5 * s}, {52 * s, 0}}},
		"the holder never knows it": {func(time.Duration) peers { return peers{one} }, nil, nil, unknownTo,
			[]step{{0, 7 * s}, {44 * s, 1 * s}, {45 * s, 1 * s}, {54 * s, 1 * s}, {55 * s, 0}}},
		"agents start there": {func(at time.Duration) peers {
			if at < 20*s {
				return peers{one}
			}
			return nil
		}, nil, nil, unheld, []step{{0, 7 * s}, {15 * s, 5 * s}, {20 * s, 0}}},
		"another node comes": {func(time.Duration) peers { return peers{one} }, nil, func(at time.Duration) peers {
			if at < 30*s {
				return peers{one}
			}
			return peers{one, two}
		}, unheld, []step{{0, 7 * s}, {29 * s, 5 * s}, {30 * s, 5 * s}, {45 * s, 5 * s}, {74 * s, 1 * s}, {75 * s, 0}}},
		"the list goes on changing": {func(time.Duration) peers { return peers{one} }, nil, func(at time.Duration) peers {
			return peers{one, {Name: fmt.Sprint(at)}}
		}, unheld, []step{{0, 7 * s}, {60 * s, 5 * s}, {120 * s, 5 * s}, {179 * s, 1 * s}, {180 * s, 0}}},
		"none": {func(time.Duration) peers { return nil }, nil, nil, unheld, []step{{0, 7 * s}, {7 * s, 0}}},
	} {
		t.Run(name, func(t *testing.T) {
			var a joinDelay
			a.operators.senders = testkit.Addrs(tt.senders...)
			began := time.Now()
			for _, step := range tt.steps {
				now, all := began.Add(step.at), peers{one, two}
				if tt.nodes != nil {
					all = tt.nodes(step.at)
				}
				a.operators.follow(now, tt.operators(step.at), all)
				if got := a.wait(now, false, false, func() linkState { return tt.link }); got != step.want {
					t.Fatalf("after %v: %v, want %v", step.at, got, step.want)
				}
			}
		})
	}
}
