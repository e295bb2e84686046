package keepalived

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/state"
)

func TestBootstrapLifetime(t *testing.T) {
	type step struct {
		at          time.Duration
		api, ironic bool
		changed     bool
	}
	s := time.Second
	tests := []struct {
		name  string
		steps []step
	}{
		{"never ready", []step{{0, false, false, false}, {time.Hour, false, false, false}}},
		{"ready, then gone for long enough", []step{{0, true, false, false}, {1 * s, false, false, false}, {3 * s, false, false, false}, {4 * s, false, false, true}}},
		{"a restart does not count", []step{{0, true, false, false}, {1 * s, false, false, false}, {3 * s, true, false, false}, {4 * s, false, false, false}, {6 * s, false, false, false}, {7 * s, false, false, true}}},
		{"the provisioning service goes on", []step{{0, true, true, false}, {1 * s, false, true, false}, {time.Hour, false, true, false}, {time.Hour + s, false, false, false}, {time.Hour + 4*s, false, false, true}}},
		{"the end comes once", []step{{0, true, false, false}, {1 * s, false, false, false}, {4 * s, false, false, true}, {5 * s, false, false, false}, {time.Hour, false, false, false}}},
		{"ready again for long enough, then gone again", []step{{0, true, false, false}, {1 * s, false, false, false}, {4 * s, false, false, true}, {5 * s, true, false, false}, {6 * s, true, false, false}, {8 * s, true, false, true}, {9 * s, true, false, false}, {10 * s, false, false, false}, {13 * s, false, false, true}}},
		{"ready again for a moment", []step{{0, true, false, false}, {1 * s, false, false, false}, {4 * s, false, false, true}, {5 * s, true, false, false}, {7 * s, false, false, false}, {8 * s, true, false, false}, {10 * s, true, false, false}, {11 * s, false, false, false}}},
		{"the provisioning service alone takes no end back", []step{{0, true, true, false}, {1 * s, false, false, false}, {4 * s, false, false, true}, {5 * s, false, true, false}, {time.Hour, false, true, false}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := newBootstrapLifetime(filepath.Join(t.TempDir(), "gone"))
			began := time.Now()
			for _, step := range tt.steps {
				b := health.NewBoard()
				b.Set(state.Fact{Name: health.FactAPI, OK: step.api})
				b.Set(state.Fact{Name: health.FactIronic, OK: step.ironic})
				if got := x.look(began.Add(step.at), b.Get); got != step.changed {
					t.Fatalf("after %v: changed %v", step.at, got)
				}
			}
		})
	}
}

func TestBootstrapLifetimeIsRemembered(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "gone")
	x := newBootstrapLifetime(marker)
	if x.over {
		t.Error("over before it began")
	}
	for _, over := range []bool{true, false, true} {
		x.over = over
		if err := x.remember(); err != nil {
			t.Fatal(err)
		}
		if x = newBootstrapLifetime(marker); x.over != over {
			t.Errorf("remembered %v, want %v", x.over, over)
		}
	}
}

// A host that starts with an end from before takes part only once its API server is
// ready.
func TestBootstrapLifetimeOverBefore(t *testing.T) {
	x := newBootstrapLifetime(filepath.Join(t.TempDir(), "gone"))
	x.over = true
	began := time.Now()
	for at, api := range []bool{false, false, false, false, false, true, true, true, true} {
		b := health.NewBoard()
		b.Set(state.Fact{Name: health.FactAPI, OK: api})
		if changed := x.look(began.Add(time.Duration(at)*time.Second), b.Get); changed != (at == 8) || x.over == (at == 8) {
			t.Fatalf("after %d s: changed %v, over %v", at, changed, x.over)
		}
	}
}

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
	tests := []struct {
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
		// No API server has vouched for the list since the start (hard case 36).
		{"known, stale, nobody holds the VIP, or who does knows the node", true, strangers(0), []step{{0, false, 0, true}, {1 * s, false, 0, true}}},
		{"known, stale, the holder does not know it", true, strangers(9 * s), []step{{0, false, doubtTime, true}, {10 * s, false, doubtTime, true}}},
		{"... adverts of the holder come", true, func(at time.Duration) linkState {
			switch {
			case at < 4*s:
				return unknownTo
			case at < 8*s:
				return unheld // for a moment
			}
			return knownTo
		}, []step{{0, false, doubtTime, true}, {5 * s, false, doubtTime, true}, {10 * s, false, 0, true}, {11 * s, false, 0, true}}},
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
		{"new, stale, nobody holds the VIP", false, strangers(0), []step{{0, false, 7 * s, true}, {7 * s, false, 0, true}}},
		// The API goes away later (hard case 19).
		{"known, vouched for before", true, strangers(time.Hour), []step{{0, false, 0, false}, {1 * s, false, 0, true}, {time.Hour, false, 0, true}}},
		{"known, stale at first", true, strangers(0), []step{{0, false, 0, true}, {1 * s, false, 0, false}, {2 * s, false, 0, true}}},
		{"known, the holder does not", true, strangers(time.Hour), []step{{0, false, 0, false}}},
	}
	for _, tt := range tests {
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

// A node that another host holds a VIP beside is in doubt, also after it was sure.
func TestSuspect(t *testing.T) {
	a, now := joinDelay{known: true}, time.Now()
	never := func() linkState { t.Fatal("the link is asked"); return undetermined }
	if got := a.wait(now, false, false, never); got != 0 {
		t.Fatalf("%v while an API server lists it", got)
	}
	a.suspect()
	if got := a.wait(now, false, true, func() linkState { return unknownTo }); got != doubtTime {
		t.Errorf("%v, want %v", got, doubtTime)
	}
	if got := a.wait(now.Add(doubtTime), false, true, func() linkState { return knownTo }); got != 0 {
		t.Errorf("%v after adverts of the holder", got)
	}
	a.suspect()
	if got := a.wait(now.Add(time.Minute), false, false, never); got != joinTime {
		t.Errorf("%v when an API server lists it, want %v", got, joinTime)
	}
}
