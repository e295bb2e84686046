package keepalived

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/health"
)

func TestTenure(t *testing.T) {
	type step struct {
		at          time.Duration
		api, ironic bool
		ended       bool
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
		{"the end comes once", []step{{0, true, false, false}, {1 * s, false, false, false}, {4 * s, false, false, true}, {5 * s, false, false, false}, {6 * s, true, false, false}, {7 * s, false, false, false}, {20 * s, false, false, false}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := newTenure(filepath.Join(t.TempDir(), "gone"))
			began := time.Now()
			for _, step := range tt.steps {
				b := health.NewBoard()
				b.Set(health.Fact{Name: health.FactAPI, OK: step.api})
				b.Set(health.Fact{Name: health.FactIronic, OK: step.ironic})
				if got := x.look(began.Add(step.at), b.Get); got != step.ended {
					t.Fatalf("after %v: ended %v", step.at, got)
				}
			}
		})
	}
}

func TestTenureIsRemembered(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "gone")
	if newTenure(marker).over {
		t.Error("over before it began")
	}
	if err := newTenure(marker).remember(); err != nil {
		t.Fatal(err)
	}
	if !newTenure(marker).over {
		t.Error("forgotten")
	}
}

func TestArrival(t *testing.T) {
	type step struct {
		at           time.Duration
		unregistered bool
		want         time.Duration
	}
	s := time.Second
	tests := []struct {
		name  string
		known bool
		steps []step
	}{
		{"new", false, []step{{0, true, 0}, {1 * s, false, 7 * s}, {4 * s, false, 4 * s}, {8 * s, false, 0}, {9 * s, false, 0}}},
		{"new, listed before the agent started", false, []step{{0, false, 7 * s}, {7 * s, false, 0}}},
		{"known, the list not read yet", true, []step{{0, true, 0}, {1 * s, false, 0}}},
		{"known, removed and back", true, []step{{0, false, 0}, {1 * s, true, 0}, {2 * s, true, 0}, {3 * s, false, 7 * s}, {10 * s, false, 0}}},
		{"removed while it waits", false, []step{{0, false, 7 * s}, {5 * s, true, 0}, {6 * s, false, 7 * s}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := arrival{known: tt.known}
			began := time.Now()
			for _, step := range tt.steps {
				if got := a.wait(began.Add(step.at), step.unregistered); got != step.want {
					t.Fatalf("after %v: %v, want %v", step.at, got, step.want)
				}
			}
		})
	}
}
