package chaos

import (
	"slices"
	"testing"
	"time"
)

var (
	shape = clusterShape{Nodes: 5, ControlPlane: []int{0, 1, 2}, Routers: []int{3, 4}}
	names = []string{"master-0", "master-1", "master-2", "worker-0", "worker-1"}
)

func TestSeedDeterminesPlan(t *testing.T) {
	limits := Limits{AtOnce: DefaultAtOnce}
	first := Text(newSchedule(7, time.Hour, shape, limits), names)
	if again := Text(newSchedule(7, time.Hour, shape, limits), names); again != first {
		t.Error("the same seed gives another schedule")
	}
	if other := Text(newSchedule(8, time.Hour, shape, limits), names); other == first {
		t.Error("another seed gives the same schedule")
	}
	long, short := newSchedule(7, time.Hour, shape, limits), newSchedule(7, 10*time.Minute, shape, limits)
	if got, want := Text(short[:5], names), Text(long[:5], names); got != want {
		t.Errorf("rounds depend on how many there are:\n%s\n%s", got, want)
	}
}

func TestEveryKindHappens(t *testing.T) {
	happened := map[Kind]int{}
	for _, r := range newSchedule(1, time.Hour, shape, Limits{AtOnce: DefaultAtOnce}) {
		for _, f := range r.Faults {
			happened[f.Kind]++
		}
	}
	for _, k := range Kinds() {
		if (happened[k] > 0) != k.applies(false) {
			t.Errorf("%s happens %d times in an hour", k, happened[k])
		}
		if actions[k] == nil {
			t.Errorf("nothing is done for %s", k)
		}
		if k.title() == "" {
			t.Errorf("%s has no title", k)
		}
	}
}

// Concurrent faults have different targets and a limited number; unless a round is merciless
// some node is not affected.
func TestFaultsGoTogether(t *testing.T) {
	const most = 3
	several := 0
	for _, r := range newSchedule(3, 2*time.Hour, shape, Limits{AtOnce: most}) {
		for i, f := range r.Faults {
			if k := kindOf(f.Kind); f.For < k.least || f.For > k.most {
				t.Errorf("round %d: %s", r.Number, f.text(names))
			}
			atOnce := 1
			for _, g := range r.Faults[:i] {
				if _, end := g.span(); end <= f.At {
					continue
				}
				atOnce++
				if f.collides(g) {
					t.Errorf("round %d: %s and %s are about the same", r.Number, g.text(names), f.text(names))
				}
			}
			if atOnce > most {
				t.Errorf("round %d: %d faults at once", r.Number, atOnce)
			}
			if atOnce > 1 {
				several++
			}
		}
	}
	if several == 0 {
		t.Error("there is never more than one fault at a time")
	}
}

func TestKindsAreLimited(t *testing.T) {
	only := []Kind{power, flush}
	for _, r := range newSchedule(5, 5*time.Minute, shape, Limits{Kinds: only, AtOnce: 2}) {
		for _, f := range r.Faults {
			if !slices.Contains(only, f.Kind) {
				t.Errorf("%s was not asked for", f.Kind)
			}
		}
	}
	if err := (Limits{Kinds: []Kind{"plague"}, AtOnce: 1}).check(); err == nil {
		t.Error("a kind that there is not is taken")
	}
	if err := (Limits{}).check(); err == nil {
		t.Error("no fault at a time is taken")
	}
}

// A shape without a target for some kinds gets the others.
func TestSmallShapes(t *testing.T) {
	for _, s := range []clusterShape{{Nodes: 1, ControlPlane: []int{0}}, {Nodes: 2, ControlPlane: []int{0, 1}}, {Nodes: 1}} {
		for _, r := range newSchedule(1, 10*time.Minute, s, Limits{AtOnce: 4}) {
			for _, f := range r.Faults {
				for _, n := range f.Nodes {
					if n >= s.Nodes {
						t.Errorf("%+v: %s on node %d", s, f.Kind, n)
					}
				}
			}
		}
	}
}

// Whenever a node was deleted, another one may hold the VIP, in every round.
func TestDeletedNodeIsNotAlone(t *testing.T) {
	seen := 0
	for _, r := range newSchedule(4, 10*time.Hour, shape, Limits{AtOnce: DefaultAtOnce}) {
		for _, f := range r.Faults {
			if !f.Kind.deletes() {
				continue
			}
			seen++
			impaired := map[int]bool{}
			for _, g := range r.Faults {
				if g.overlaps(f.span()) && kindOf(g.Kind).impairs {
					for _, n := range g.Nodes {
						impaired[n] = true
					}
				}
			}
			for _, group := range [][]int{shape.ControlPlane, shape.Routers} {
				if !slices.ContainsFunc(group, func(n int) bool { return !impaired[n] }) {
					t.Errorf("round %d: with %s, none of %v stays as it is", r.Number, f.text(names), group)
				}
			}
		}
	}
	if seen == 0 {
		t.Error("no node is ever deleted")
	}
}
