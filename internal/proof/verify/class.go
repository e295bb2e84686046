package verify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/internal/vrrp"
)

// class is a set of states of a node that neither the other nodes nor clients can distinguish.
// A host that is down, for one, is in one class whatever works on it.
type class struct {
	// likeness is the state of the class with the fewest failures.
	likeness state
	failures int
	// runs is set where keepalived runs, serves where an API server works.
	runs, serves bool
	// changes are the single failures and repairs that lead to another class.
	changes []change
}

// change is a part that fails or recovers.
type change struct {
	part  int
	works bool
	// to is the resulting class.
	to int
}

// signature holds the parts of a state that other nodes can distinguish.
type signature struct {
	runs, serves bool
	health       [2]vrrp.Health
	quality      [2]quality
	over         bool // a part that does not recover has failed
}

func (k *kind) signature(s state) signature {
	g := signature{runs: k.runs(s), serves: k.serves(s)}
	for i, p := range k.parts {
		g.over = g.over || p.once && !s.works(i)
	}
	if !g.runs {
		return g // it is not reachable by way of the VIP
	}
	for i, api := range []bool{false, true} {
		g.health[i], g.quality[i] = k.health(s, api), k.quality(s, api)
	}
	return g
}

// classes returns the classes of a kind of node, beginning with the one in which all works.
func (k *kind) classes() []class {
	states := make([]state, 0, int(k.all())+1)
	for s := range int(k.all()) + 1 {
		states = append(states, state(s))
	}
	slices.SortStableFunc(states, func(a, b state) int {
		if d := k.failures(a) - k.failures(b); d != 0 {
			return d
		}
		return int(b) - int(a)
	})
	var out []class
	of := map[state]int{}
	known := map[signature]int{}
	for _, s := range states {
		g := k.signature(s)
		i, ok := known[g]
		if !ok {
			i = len(out)
			known[g] = i
			out = append(out, class{likeness: s, failures: k.failures(s), runs: g.runs, serves: g.serves})
		}
		of[s] = i
	}
	for _, s := range states {
		k.addChanges(&out[of[s]], s, of)
	}
	return out
}

// addChanges adds the changes of a node in that state, except those that another state of the
// class has.
func (k *kind) addChanges(c *class, s state, of map[state]int) {
	for i, p := range k.parts {
		works := !s.works(i)
		ch := change{part: i, works: works, to: of[s^1<<i]}
		same := func(o change) bool { return o.to == ch.to }
		if of[s] == ch.to || works && p.once || slices.ContainsFunc(c.changes, same) {
			continue
		}
		c.changes = append(c.changes, ch)
	}
}

func (p *player) describe(ch change) string {
	part := p.kind.parts[ch.part]
	if !ch.works {
		return fmt.Sprintf("%s now %s", p.name, part.fails)
	}
	what := fmt.Sprintf("%s %s again", p.name, part.works)
	if rest := p.kind.describe(p.classes[ch.to].likeness); len(rest) > 0 {
		what += ", and " + strings.Join(rest, ", ")
	}
	return what
}
