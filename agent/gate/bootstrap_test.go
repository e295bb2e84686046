package gate

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/testkit"
)

func TestBootstrapLifetime(t *testing.T) {
	type step struct {
		at          time.Duration
		api, ironic bool
		changed     bool
	}
	s := time.Second
	for _, tt := range []struct {
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
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := NewLifetime(filepath.Join(t.TempDir(), "gone"), slog.New(slog.DiscardHandler))
			began := time.Now()
			for _, step := range tt.steps {
				b := health.NewBoard()
				b.Set(state.Fact{Name: health.FactAPI, OK: step.api})
				b.Set(state.Fact{Name: health.FactIronic, OK: step.ironic})
				if got := x.evaluate(began.Add(step.at), b.Get); got != step.changed {
					t.Fatalf("after %v: changed %v", step.at, got)
				}
			}
		})
	}
}

func TestBootstrapLifetimeIsRemembered(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "gone")
	x := NewLifetime(marker, slog.New(slog.DiscardHandler))
	if x.over {
		t.Error("over before it began")
	}
	for _, over := range []bool{true, false, true} {
		x.over = over
		testkit.Must(t, x.store())
		if x = NewLifetime(marker, slog.New(slog.DiscardHandler)); x.over != over {
			t.Errorf("remembered %v, want %v", x.over, over)
		}
	}
}

// A host that restarts with the recorded end of its bootstrap takes part only once its API
// server is ready.
func TestBootstrapLifetimeOverBefore(t *testing.T) {
	x := NewLifetime(filepath.Join(t.TempDir(), "gone"), slog.New(slog.DiscardHandler))
	x.over = true
	began := time.Now()
	for at, api := range []bool{false, false, false, false, false, true, true, true, true} {
		b := health.NewBoard()
		b.Set(state.Fact{Name: health.FactAPI, OK: api})
		if changed := x.evaluate(began.Add(time.Duration(at)*time.Second), b.Get); changed != (at == 8) || x.over == (at == 8) {
			t.Fatalf("after %d s: changed %v, over %v", at, changed, x.over)
		}
	}
}
