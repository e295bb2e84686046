package bench

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab"
	"github.com/vipgen/vipgen/lab/report"
)

// played is a benchmark of two scenarios and two profiles whose runs take ten seconds each.
func played(ctx context.Context, t *testing.T, after func(runs int)) (b *bench, steps []Step, err error) {
	demo, err := lab.Demo()
	testkit.Must(t, err)
	now, runs := time.Unix(0, 0), 0
	b = &bench{
		cfg: &Config{
			Cluster: demo, Runs: 2, Profiles: []Profile{{Name: "a"}, {Name: "b"}},
			Scenarios: []Scenario{{Name: "once", VIP: api, Once: true}, {Name: "often", VIP: api}},
			Step:      func(s Step) { steps = append(steps, s) },
		},
		report: &report.Report{}, room: 2, now: func() time.Time { return now },
		measure: func(ctx context.Context, _ *Scenario, _ Profile, _ float64) (report.Run, error) {
			now, runs = now.Add(10*time.Second), runs+1
			after(runs)
			return report.Run{Asked: runs}, ctx.Err()
		},
	}
	err = b.playAll(ctx)
	return b, steps, err
}

// Each run is announced, with the remaining time at the pace so far.
func TestSteps(t *testing.T) {
	_, steps, err := played(t.Context(), t, func(int) {})
	testkit.Must(t, err)
	testkit.Equal(t, []time.Duration{0, 50, 40, 30, 20, 10}, lists.Map(steps, func(s Step) time.Duration { return s.Left / time.Second }))
	testkit.Equal(t, Step{Scenario: 2, Scenarios: 2, Name: "often", Run: 2, Runs: 2, Profile: "a", Left: 20 * time.Second}, steps[4])
	testkit.Equal(t, "often, run 2 of 2, a", steps[4].String())
}

// The report of an interrupted benchmark has the runs before the interruption.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b, _, err := played(ctx, t, func(runs int) {
		if runs == 4 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	var runs []int
	for _, s := range b.report.Scenarios {
		for _, r := range s.Results {
			runs = append(runs, len(r.Runs))
		}
	}
	testkit.Equal(t, []int{1, 1, 1, 0}, runs)
}
