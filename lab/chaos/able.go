package chaos

import (
	"slices"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// wanted returns the wanted state of the VIP at a time.
func (v *vip) wanted(at time.Duration) wanted {
	what := wantEither
	for _, w := range v.Wants {
		if w.From <= at {
			what = w.What
		}
	}
	return what
}

// holders returns the places of the nodes that have a VIP at a time.
func (j *judge) holders(vip int, at time.Duration) (out []int) {
	for n := range j.Nodes {
		if slices.ContainsFunc(j.Holders, func(s span) bool {
			return s.VIP == j.VIPs[vip].Addr && s.Node == j.Nodes[n].Name && s.From <= at && at < s.To
		}) {
			out = append(out, n)
		}
	}
	return out
}

// ability is the ability of a node to hold and serve a VIP.
type ability int

const (
	able ability = iota
	unsure
	unable
)

// nodeState is the state of a node at a time.
type nodeState struct {
	conditions []condition
	side       int
	backends   ability // to reach an API server from here
}

func (s nodeState) has(e effect, group v1alpha1.GroupRole) bool {
	return slices.ContainsFunc(s.conditions, func(c condition) bool {
		return c.Effect == e && (c.Group == "" || group == "" || c.Group == group)
	})
}

// ability returns the ability of a node to hold the VIPs of a group.
func (s nodeState) ability(group v1alpha1.GroupRole) ability {
	balances := group == v1alpha1.GroupAPI
	switch {
	case s.has(effectOut, group), s.has(effectMute, group), s.has(effectStale, group):
		return unable
	case s.side == betweenSides, s.has(effectUnsure, group), s.has(effectLeaving, group), s.has(effectUnwatched, group):
		return unsure
	case s.has(effectUnfit, group), balances && s.backends == unable:
		return unable
	case balances && s.backends == unsure:
		return unsure
	}
	return able
}

// notice returns the time until a node that cannot serve is noticed; 0 if it is silent.
func (s nodeState) notice(group v1alpha1.GroupRole, b Bounds) (most time.Duration) {
	for _, c := range s.conditions {
		if c.Effect == effectUnfit && (c.Group == "" || c.Group == group) {
			most = max(most, c.Notice)
		}
	}
	if group == v1alpha1.GroupAPI && s.backends == unable {
		most = max(most, b.Backends)
	}
	return most
}

// states returns the states of all nodes at a time.
func (j *judge) states(at time.Duration) []nodeState {
	out := make([]nodeState, len(j.Nodes))
	sides, since := j.sides(at)
	for n, node := range j.Nodes {
		out[n].side = sides[node.Name]
		for _, c := range j.Conditions {
			if (c.Node == "" || c.Node == node.Name) && c.From <= at && at < c.To {
				out[n].conditions = append(out[n].conditions, c)
			}
		}
	}
	for n := range out {
		out[n].backends = j.backends(out, n, at-since < j.bounds.BackendUp)
	}
	return out
}

// sides returns the sides of a partition at a time, and their start.
func (j *judge) sides(at time.Duration) (sides map[string]int, since time.Duration) {
	since = -forever / 2
	for _, t := range j.Topologies {
		if t.From <= at {
			sides, since = t.Sides, t.From
		}
	}
	return sides, since
}

// backends returns the ability of a node to reach an API server. Other nodes on the same side count
// as reachable once load balancers had time to find them after a change of the network (fresh).
func (j *judge) backends(all []nodeState, n int, fresh bool) ability {
	best := unable
	for m, node := range j.Nodes {
		s := all[m]
		if !node.API || s.has(effectNoAPI, "") || m != n && (s.has(effectOut, "") || s.side != all[n].side) {
			continue
		}
		if m != n && (fresh || s.side == betweenSides) || s.has(effectUnsureAPI, "") {
			best = min(best, unsure)
			continue
		}
		best = able
	}
	return best
}
