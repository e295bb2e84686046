package doctor

import (
	"cmp"
	"fmt"
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

// TestCertainStays: a cause that is certain at the end of a record remains so when the record
// continues. Each script is diagnosed at each moment.
func TestCertainStays(t *testing.T) {
	for name, tt := range causes {
		t.Run(name, func(t *testing.T) {
			list := play(t, holding+tt.script)
			whole := Diagnose(list)
			for _, e := range list {
				known := slices.DeleteFunc(slices.Clone(list), func(o events.Event) bool { return o.Time.After(e.Time) })
				for _, m := range Diagnose(known).Moves {
					if m.Cause.Sure != Certain {
						continue
					}
					if !slices.ContainsFunc(whole.Moves, func(later Move) bool {
						return later.Cause.Code == m.Cause.Code && later.Cause.Node == m.Cause.Node && later.At.Sub(m.At).Abs() < lookBack
					}) {
						t.Errorf("at %v, certain: %s; in the end %+v", e.Time.Sub(epoch), brief(&m), whole.Moves)
					}
				}
			}
		})
	}
}

// falls makes a's priority fall three times, which b and c receive, whereupon b takes the VIP,
// at 10.120; a gets it back.
const falls = holding + `
10 a check redirect gone
10.001 a effective-priority 68 48
10.030 b lower-heard a 48
10.035 c lower-heard a 48
10.120 b silent-holder
10.120 b state MASTER
10.125 a higher-heard b 68 48
10.125 a state BACKUP
30 b effective-priority 68 40
30.010 c lower-heard b 40
30.020 a lower-heard b 40
30.100 a state MASTER
30.110 b higher-heard a 65 40
30.110 b state BACKUP
50 a effective-priority 65 45
50.015 b lower-heard a 45
50.020 c lower-heard a 45
50.100 c state MASTER
50.110 a higher-heard c 68 45
50.110 a state BACKUP
`

// shifted shifts the clocks of nodes from some boots on.
func shifted(list []events.Event, by map[string]time.Duration) []events.Event {
	for i := range list {
		list[i].Time = list[i].Time.Add(by[list[i].Node])
	}
	return list
}

func TestClocks(t *testing.T) {
	for name, tt := range map[string]struct {
		by   map[string]time.Duration
		want string // the nodes whose clocks are off
	}{
		"all right":          {nil, ""},
		"less than shows":    {map[string]time.Duration{"b": 100 * time.Millisecond}, ""},
		"one ahead":          {map[string]time.Duration{"b": 7300 * time.Millisecond}, "b"},
		"one behind by days": {map[string]time.Duration{"a": -50 * time.Hour}, "a"},
		"all the same":       {map[string]time.Duration{"a": time.Hour, "b": time.Hour, "c": time.Hour}, ""},
		"two differ":         {map[string]time.Duration{"b": 20 * time.Second, "c": -3 * time.Second}, "bc"},
	} {
		t.Run(name, func(t *testing.T) {
			r := Diagnose(shifted(play(t, falls), tt.by))
			got := ""
			for _, c := range r.Clocks {
				got += c.Node
				if off := (c.Ahead.Duration() - tt.by[c.Node]).Abs(); tt.want != "bc" && off > 400*time.Millisecond || c.Seen < 2 {
					t.Errorf("%+v", c)
				}
			}
			if tt.want == "bc" { // no two agree: which is right is unknown
				testkit.Equal(t, 2, len(r.Clocks))
			} else if got != tt.want {
				t.Errorf("%s, %+v", got, r.Clocks)
			}
			var said []string
			for i := range r.Moves {
				m := &r.Moves[i]
				said = append(said, fmt.Sprintf("%v%v%s", m.From, m.To, m.Cause.Code))
				if m.Unheld > 700 || m.SplitBrain > 700 {
					t.Errorf("%s", brief(m))
				}
			}
			testkit.Equal(t, "[[][a]first-holder [a][b]redirect-missing [b][a]check-failed [a][c]check-failed]", fmt.Sprint(said))
		})
	}
}

// A clock that is set at run time does not change the order of events on its node.
func TestClockIsSet(t *testing.T) {
	list := play(t, holding+`
10 a keepalived-died
10.150 b silent-holder
10.150 b state MASTER`)
	for i := range list {
		if e := &list[i]; e.Node == "a" && e.Up < 105_000 {
			e.Time = e.Time.Add(-300 * 24 * time.Hour)
		}
	}
	r := Diagnose(list)
	if len(r.Moves) != 2 || brief(&r.Moves[1]) != "a>b keepalived-died certain unheld 150 split 0" {
		t.Errorf("%+v", r.Moves)
	}
}

// Advertisements received late, as after a cut, are no evidence of a wrong clock.
func TestLateAdvertsProveNoClock(t *testing.T) {
	r := Diagnose(play(t, holding+`
10 a effective-priority 68 48
10.010 b lower-heard a 48
10.010 c lower-heard a 48
100 b effective-priority 40 68
100 c effective-priority 40 68
100.010 b lower-heard a 48
100.010 c lower-heard a 48
200 c higher-heard b 68 48
300 b higher-heard a 68 48
`))
	testkit.Equal(t, 0, len(r.Clocks))
}
