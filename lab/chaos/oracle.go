package chaos

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Rule is an invariant of the cluster.
type Rule string

// Rules.
const (
	splitBrain  Rule = "split-brain"     // two nodes that reach each other hold a VIP for longer than an advertisement needs
	noHolder    Rule = "no-holder"       // no node holds a VIP although one could serve it
	notWanted   Rule = "not-wanted"      // a node holds an address that is no VIP any more
	invalidFile Rule = "invalid-file"    // a file on disk is invalid
	leak        Rule = "leak"            // something is left behind
	noReturn    Rule = "does-not-return" // a process that ended does not run again
	noRest      Rule = "no-rest"         // the cluster does not return to its first state when no fault is left
	agentStuck  Rule = "agent-stuck"     // an agent that runs does not answer
	logFlood    Rule = "log-flood"       // a container logs more than a disk can take
)

// Violation is a time in which a rule did not hold.
type Violation struct {
	Rule     Rule          `json:"rule"`
	From     time.Duration `json:"from"`
	To       time.Duration `json:"to"`
	Allowed  time.Duration `json:"allowed"`
	VIP      string        `json:"vip,omitempty"`
	Nodes    []string      `json:"nodes,omitempty"`
	Happened string        `json:"happened"`
}

func (v Violation) String() string {
	s := fmt.Sprintf("%s: %s", v.Rule, v.Happened)
	if v.To > v.From {
		s += fmt.Sprintf(", from %.3fs to %.3fs: %v", v.From.Seconds(), v.To.Seconds(), round(v.To-v.From))
	}
	if v.Allowed > 0 {
		s += fmt.Sprintf(", and %v are allowed", round(v.Allowed))
	}
	return s
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// longest holds the longest allowed deviations.
type longest struct {
	// Without is the longest time in which no node that could serve held a VIP, although there was
	// one. Overlap is the longest time in which two nodes held one.
	Without, Overlap time.Duration
}

// judgeHistory returns the violations in a history, sorted by time.
func judgeHistory(h history, b Bounds) ([]Violation, longest) {
	j := &judge{history: h, bounds: b, spells: map[spellKey]*spell{}, silences: h.silence()}
	edges := j.edges()
	for i := 0; i+1 < len(edges); i++ {
		j.segment(edges[i], edges[i+1])
	}
	for _, k := range slices.SortedFunc(maps.Keys(j.spells), spellKey.compare) {
		j.end(k)
	}
	j.logFloods()
	j.lostRequests()
	slices.SortStableFunc(j.found, func(a, b Violation) int { return cmp.Compare(a.From, b.From) })
	return j.found, j.longest
}

// judge walks through a history from one change to the next.
type judge struct {
	history
	bounds  Bounds
	spells  map[spellKey]*spell
	found   []Violation
	longest longest
	// silences are the times without an answer to the client behind the routers.
	silences []span
}

// spellKey identifies a deviation that lasts.
type spellKey struct {
	rule       Rule
	vip        int
	node, with int // with is -1 without a second node
}

func (k spellKey) compare(other spellKey) int {
	return cmp.Or(cmp.Compare(k.rule, other.rule), cmp.Compare(k.vip, other.vip), cmp.Compare(k.node, other.node), cmp.Compare(k.with, other.with))
}

// spell is an uninterrupted deviation.
type spell struct {
	from, to time.Duration
	// bad are holders that could not serve, with the time that each may need to notice.
	bad map[string]time.Duration
}

// edges returns the times of all changes, and both ends.
func (j *judge) edges() []time.Duration {
	all := []time.Duration{j.From, j.Now}
	add := func(times ...time.Duration) {
		for _, t := range times {
			if t > j.From && t < j.Now {
				all = append(all, t)
			}
		}
	}
	for _, s := range append(slices.Clone(j.Holders), j.silences...) {
		add(s.From, s.To)
	}
	for _, c := range j.Conditions {
		add(c.From, c.To)
	}
	for _, t := range j.Topologies {
		add(t.From, t.From+j.bounds.BackendUp)
	}
	for _, v := range j.VIPs {
		for _, w := range v.Wants {
			add(w.From)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// segment evaluates a time in which nothing changed.
func (j *judge) segment(from, to time.Duration) {
	nodes := j.states(from)
	for v := range j.VIPs {
		held := j.holders(v, from)
		if j.bounds.Session > 0 {
			if j.VIPs[v].wanted(from) == wantHeld {
				j.checkRouted(v, nodes, held, from, to)
			}
			continue
		}
		switch j.VIPs[v].wanted(from) {
		case wantHeld:
			j.checkHeld(v, nodes, held, from, to)
		case wantGone:
			for _, n := range held {
				s := nodes[n]
				if s.has(effectStale, "") || s.has(effectMute, "") || s.has(effectOut, "") || s.has(effectUnsure, "") {
					continue
				}
				j.extend(spellKey{notWanted, v, n, -1}, from, to)
			}
		}
		j.checkSplitBrain(v, nodes, held, from, to)
	}
	for _, k := range slices.SortedFunc(maps.Keys(j.spells), spellKey.compare) {
		if j.spells[k].to < to {
			j.end(k)
		}
	}
}

// checkHeld checks for each node that could hold the VIP that a node that can serve holds it.
func (j *judge) checkHeld(v int, nodes []nodeState, held []int, from, to time.Duration) {
	group := j.VIPs[v].Group
	for n, s := range nodes {
		if !slices.Contains(j.Nodes[n].Groups, group) || s.ability(group) != able {
			continue
		}
		bad, served := map[string]time.Duration{}, false
		for _, h := range held {
			if nodes[h].side != s.side {
				continue
			}
			if nodes[h].ability(group) == unable {
				bad[j.Nodes[h].Name] = nodes[h].notice(group, j.bounds)
			} else {
				served = true
			}
		}
		if !served {
			r := j.extend(spellKey{noHolder, v, n, -1}, from, to)
			for name, d := range bad {
				r.bad[name] = max(r.bad[name], d)
			}
		}
	}
}

// checkSplitBrain checks that no holder reaches another one.
func (j *judge) checkSplitBrain(v int, nodes []nodeState, held []int, from, to time.Duration) {
	speaks := func(n int) bool {
		s := nodes[n]
		return s.side != betweenSides && !s.has(effectOut, "") && !s.has(effectMute, "") && !s.has(effectStale, "")
	}
	for i, a := range held {
		for _, b := range held[i+1:] {
			if speaks(a) && speaks(b) && nodes[a].side == nodes[b].side {
				j.extend(spellKey{splitBrain, v, a, b}, from, to)
			}
		}
	}
}

// extend extends the spell of a deviation, or starts one.
func (j *judge) extend(k spellKey, from, to time.Duration) *spell {
	r := j.spells[k]
	if r == nil {
		r = &spell{from: from, bad: map[string]time.Duration{}}
		j.spells[k] = r
	}
	r.to = to
	return r
}

// end ends a spell, and reports a violation if it lasted longer than allowed.
func (j *judge) end(k spellKey) {
	r := j.spells[k]
	delete(j.spells, k)
	length := r.to - r.from
	allowed := j.allowed(k, r)
	if length > allowed {
		j.found = append(j.found, j.violation(k, r, allowed))
		return
	}
	switch k.rule {
	case splitBrain:
		j.longest.Overlap = max(j.longest.Overlap, length)
	case noHolder, noAnswer:
		j.longest.Without = max(j.longest.Without, length)
	}
}

// neighbour is the time that a packet waits for a link address that was requested while no host
// could answer (RFC 4861, section 10, RETRANS_TIMER; arp(7) has the same).
const neighbour = time.Second

// disowned is the time in which a node that the others do not know gives way, whatever the profile
// (hard case 51).
const disowned = time.Second

// allowed returns the time that a spell may last.
func (j *judge) allowed(k spellKey, r *spell) time.Duration {
	extra := j.late(r.from, r.to)
	if j.overlaps(effectReload, "", r.from, r.to) {
		extra += j.bounds.election()
	}
	switch k.rule {
	case splitBrain:
		for _, n := range []int{k.node, k.with} {
			if j.overlaps(effectDisowned, j.Nodes[n].Name, r.from, r.to) {
				return disowned + j.bounds.Slack + extra
			}
		}
		if j.justMet(k, r) {
			extra += neighbour
		}
		return j.bounds.overlap() + extra
	case notWanted:
		return j.bounds.Slack + extra
	case notRouted:
		return 2*j.bounds.Session + j.bounds.Slack + extra // a session may be lost once more while it opens
	case notWithdrawn:
		return slices.Max(slices.Collect(maps.Values(r.bad))) + extra
	case noAnswer:
		return j.unanswered(k, r) + extra
	}
	if len(r.bad) == 0 {
		return j.bounds.silent() + extra
	}
	sum := j.bounds.Slack
	for _, notice := range r.bad { // one after another at worst
		sum += notice + j.bounds.election()
	}
	return sum + extra
}

// late returns the delay of this machine around a time.
func (j *judge) late(from, to time.Duration) (sum time.Duration) {
	for _, s := range j.Stalls {
		if s.At >= from && s.At-s.Late <= to {
			sum += s.Late
		}
	}
	return sum
}

// overlaps reports whether an effect was in force at any time of a range.
func (j *judge) overlaps(e effect, node string, from, to time.Duration) bool {
	return slices.ContainsFunc(j.Conditions, func(c condition) bool {
		return c.Effect == e && (c.Node == "" || c.Node == node || node == "") && c.From < to && c.To > from
	})
}

// justMet reports whether two nodes may have started to reach each other only recently.
func (j *judge) justMet(k spellKey, r *spell) bool {
	for _, t := range j.Topologies {
		if t.From >= r.from-neighbour && t.From < r.to {
			return true
		}
	}
	for _, c := range j.Conditions {
		if (c.Effect == effectOut || c.Effect == effectMute) && c.To >= r.from-neighbour && c.To < r.to &&
			(c.Node == j.Nodes[k.node].Name || c.Node == j.Nodes[k.with].Name) {
			return true
		}
	}
	return false
}

func (j *judge) violation(k spellKey, r *spell, allowed time.Duration) Violation {
	v := Violation{Rule: k.rule, From: r.from, To: r.to, Allowed: allowed, VIP: j.VIPs[k.vip].Addr.String()}
	if k.rule == noAnswer {
		v.Happened = fmt.Sprintf("no request to %s is answered, although a node serves", v.VIP)
		return v
	}
	name := j.Nodes[k.node].Name
	switch k.rule {
	case splitBrain:
		v.Nodes = []string{name, j.Nodes[k.with].Name}
		v.Happened = fmt.Sprintf("%s and %s both hold %s", name, v.Nodes[1], v.VIP)
	case notWanted:
		v.Nodes = []string{name}
		v.Happened = fmt.Sprintf("%s holds %s, which is not a VIP of the cluster now", name, v.VIP)
	case notRouted:
		v.Nodes = []string{name}
		v.Happened = fmt.Sprintf("%s can serve %s, and its router sends it nothing", name, v.VIP)
	case notWithdrawn:
		v.Nodes = []string{name}
		v.Happened = fmt.Sprintf("%s cannot serve %s (%s), and its router sends it packets", name, v.VIP, strings.Join(slices.Sorted(maps.Keys(r.bad)), "; "))
	case noHolder:
		v.Nodes = append([]string{name}, slices.Sorted(maps.Keys(r.bad))...)
		v.Happened = fmt.Sprintf("no node holds %s, although %s could", v.VIP, name)
		if len(r.bad) > 0 {
			v.Happened = fmt.Sprintf("%s, which cannot serve, holds %s, although %s could", strings.Join(v.Nodes[1:], ", "), v.VIP, name)
		}
	}
	return v
}
