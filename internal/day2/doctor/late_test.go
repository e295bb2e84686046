package doctor

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/events"
	"github.com/vipgen/vipgen/internal/testkit"
)

// recordLate makes a node's agent record some events late, as on a busy machine: a delayed event
// has its delay, later ones wait for it, and the agent notes that it was late.
func recordLate(list []events.Event, random *rand.Rand, most time.Duration) (out []events.Event) {
	until := map[string]events.Millis{}
	for _, e := range list {
		at := max(e.Up, until[e.Node])
		if e.Kind != events.AgentStarted && random.IntN(4) == 0 {
			at = max(at, e.Up+events.MillisOf(time.Duration(random.Int64N(int64(most)))))
		}
		if late := at - max(e.Up, until[e.Node]); late.Duration() >= events.LateFrom {
			noted := e
			noted.Kind, noted.Name, noted.For, noted.Instance, noted.Up, noted.OnTime = events.Late, "agent", late, "", at, 0
			noted.Time = e.Time.Add((at - e.Up).Duration())
			out = append(out, noted)
		}
		if late := at - e.Up; late.Duration() >= events.LateFrom {
			e.Delay, e.OnTime = max(e.Delay, late), 0
		}
		e.Time, e.Up = e.Time.Add((at - e.Up).Duration()), at
		until[e.Node] = at
		out = append(out, e)
	}
	slices.SortStableFunc(out, func(a, b events.Event) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Up, b.Up)) })
	for i := range out {
		out[i].Seq = uint64(i + 1)
	}
	return out
}

// TestLateRecords: agents that record late make no wrong cause certain and no clock wrong, and
// hide few causes.
func TestLateRecords(t *testing.T) {
	for most, least := range map[time.Duration]float64{300 * time.Millisecond: 0.99, time.Second: 0.98, 2 * time.Second: 0.96} {
		right, all := 0.0, 0.0
		scripts := map[string]string{"a priority that falls three times": falls}
		for name, tt := range causes {
			scripts[name] = holding + tt.script
		}
		for name, script := range scripts {
			list := play(t, script)
			whole := Diagnose(list)
			for seed := range uint64(20) {
				r := Diagnose(recordLate(list, rand.New(rand.NewPCG(seed, 1)), most))
				testkit.Empty(testkit.In(t, name, most, seed), r.Clocks)
				for _, m := range r.Moves {
					same := slices.ContainsFunc(whole.Moves, func(w Move) bool { return w.Cause.Code == m.Cause.Code && w.Cause.Node == m.Cause.Node })
					if all++; same {
						right++
					} else if m.Cause.Sure == Certain {
						t.Errorf("%s, late by up to %v, seed %d: %s", name, most, seed, brief(&m))
					}
				}
			}
		}
		if t.Logf("late by up to %v: %.0f of %.0f", most, right, all); right < least*all {
			t.Errorf("late by up to %v: %.0f of %.0f causes are named", most, right, all)
		}
	}
}
