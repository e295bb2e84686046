package verify

import (
	"fmt"
	"slices"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// Checks of VIPs that nodes announce to routers.
var (
	announced    = Check{"announced", "routers use nodes that serve best, whenever a node can serve"}
	neverFalsely = Check{"never-falsely", "no node announces a VIP that it cannot serve"}
)

// effect is the effect of a node's parts, by whether some API server works.
type effect struct {
	runs, serves bool
	prefers      [2]vrrp.Preference
	qualities    [2]quality
	example      state
}

// effects returns the effects of a kind of node, each with the state that fails least.
func effects(g *v1alpha1.Group, role string, k *kind) (out []effect) {
	for s := k.all(); ; s-- {
		o := effect{runs: k.runs(s), serves: k.serves(s), example: s}
		for i, api := range []bool{false, true} {
			o.prefers[i], o.qualities[i] = vrrp.Withdrawn, k.quality(s, api)
			if o.runs {
				o.prefers[i] = vrrp.Prefer(g, role, k.health(s, api))
			}
		}
		same := func(p effect) bool {
			return p.runs == o.runs && p.serves == o.serves && p.prefers == o.prefers && p.qualities == o.qualities
		}
		if i := slices.IndexFunc(out, same); i < 0 {
			out = append(out, o)
		} else if k.failures(s) < k.failures(out[i].example) {
			out[i] = o
		}
		if s == 0 {
			return out
		}
	}
}

// proveRouted examines every combination of working and failed parts of the nodes that
// announce a group's VIPs. There is no election, and so no order of changes.
func (s *Setup) proveRouted() Proof {
	p := Proof{Group: s.Group.Name, VIPs: s.Group.VIPs, Stage: s.Stage, Nodes: []string{}, Notes: s.Notes, Checks: []Check{announced, neverFalsely}}
	var kinds []*kind
	var choices [][]effect
	for _, n := range s.Nodes {
		k := kindOf(&s.Group, n.Facts.Role, s.Several)
		p.Nodes = append(p.Nodes, n.Facts.Name)
		kinds, choices = append(kinds, k), append(choices, effects(&s.Group, n.Facts.Role, k))
	}
	if len(kinds) == 0 {
		p.Counterexample = &Counterexample{Check: announced, Holders: []string{}, Should: "some node", Why: "no node can announce it"}
		return p
	}
	at := make([]effect, len(kinds))
	var visit func(n int)
	visit = func(n int) {
		if p.Counterexample != nil {
			return
		}
		if n < len(kinds) {
			for _, o := range choices[n] {
				at[n] = o
				visit(n + 1)
			}
			return
		}
		p.Combinations++
		p.Counterexample = s.judgeRouted(kinds, at)
	}
	visit(0)
	return p
}

// judgeRouted runs the checks on one combination, and returns nil if they pass.
func (s *Setup) judgeRouted(kinds []*kind, at []effect) *Counterexample {
	api := 0
	if slices.ContainsFunc(at, func(o effect) bool { return o.serves }) {
		api = 1
	}
	rank := func(i int) int { // the bootstrap first
		if kinds[i].bootstrap() {
			return -1
		}
		return int(at[i].prefers[api])
	}
	most, lowest := -1, 0
	for i, o := range at {
		if o.runs && o.qualities[api].never == nil && (most < 0 || o.qualities[api].grade > at[most].qualities[api].grade) {
			most = i
		}
		if o.prefers[api].Announces() && o.qualities[api].never != nil {
			return s.routedExample(kinds, at, neverFalsely, []int{i}, "no node like that", o.qualities[api].words)
		}
	}
	var used []int
	for i, o := range at {
		if !o.prefers[api].Announces() {
			continue
		}
		if used == nil || rank(i) < lowest {
			used, lowest = nil, rank(i)
		}
		if rank(i) == lowest {
			used = append(used, i)
		}
	}
	if most < 0 || at[most].qualities[api].grade == 0 {
		return nil // no node can serve
	}
	best := at[most].qualities[api].grade
	for _, i := range used {
		if at[i].qualities[api].grade < best {
			return s.routedExample(kinds, at, announced, used, s.Nodes[most].Facts.Name, at[i].qualities[api].words+" on "+s.Nodes[i].Facts.Name)
		}
	}
	if used == nil {
		return s.routedExample(kinds, at, announced, nil, s.Nodes[most].Facts.Name, "no node announces it")
	}
	return nil
}

// routedExample describes a combination that fails a check.
func (s *Setup) routedExample(kinds []*kind, at []effect, check Check, used []int, should, why string) *Counterexample {
	c := &Counterexample{Check: check, Holders: []string{}, Should: should}
	for _, i := range used {
		c.Holders = append(c.Holders, s.Nodes[i].Facts.Name)
	}
	for i, k := range kinds {
		for _, text := range k.describe(at[i].example) {
			why += fmt.Sprintf("; %s %s", s.Nodes[i].Facts.Name, text)
		}
	}
	c.Why = why
	return c
}
