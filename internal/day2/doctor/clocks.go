package doctor

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/vipgen/vipgen/internal/events"
)

// Differing clocks are found by advertisements that both sides recorded: keepalived on one node
// records a change (takes a VIP, has another priority), and on another one that it received it.
// It was sent before it was received, and not long before. Where the nodes' clocks do not
// contradict this, they are right.

// transit is the longest delay of the receiver's record of an advertisement, besides an
// interval: keepalived and the agent may both be late.
const transit = 500 * time.Millisecond

// jitter is the longest delay of the record of the sender's agent.
const jitter = 250 * time.Millisecond

// match is a possible match of a sent and a received advertisement, with the difference by the
// nodes' own clocks.
type match struct {
	received int
	took     time.Duration
	// early and late bound the delays of the two records.
	early, late time.Duration
}

// fits reports whether the match is possible with right clocks.
func (s match) fits(most time.Duration) bool {
	return s.took >= -jitter-s.early && s.took <= most+s.late
}

type pair = [2]string

// clockBounds bounds the difference between two clocks.
type clockBounds struct {
	low, high time.Duration
	seen      int
}

// correct converts the times of all nodes to most clocks', and returns the clocks that
// differed.
func (r *records) correct() (out []Clock) {
	edges := map[pair]clockBounds{}
	sights := r.matches()
	for p, list := range sights {
		most := r.interval(p[0]) + transit
		within := bounds
		if clocksAgree(list, most) {
			within = agreeingBounds
		}
		b, ok := within(list, most)
		if !ok {
			continue
		}
		// Of both directions, the tighter bounds count.
		edges[p] = narrow(edges[p], b)
		edges[pair{p[1], p[0]}] = narrow(edges[pair{p[1], p[0]}], clockBounds{-b.high, -b.low, b.seen})
	}
	ahead := r.solve(edges)
	for _, name := range r.names {
		list := r.nodes[name]
		for i := range list {
			list[i].when = list[i].when.Add(-ahead[name].high)
		}
		slices.SortStableFunc(list, func(a, b event) int { return a.when.Compare(b.when) })
	}
	r.doubt = map[string]bool{}
	for p, list := range r.matches() {
		if !clocksAgree(list, r.interval(p[0])+transit) {
			r.doubt[p[0]], r.doubt[p[1]] = true, true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ahead)) {
		if b := ahead[name]; b.high != 0 {
			out = append(out, Clock{Node: name, Ahead: events.MillisOf(b.high), Precision: events.MillisOf(b.low), Seen: b.seen})
		}
	}
	return out
}

// matches returns the possible matches of sent and received advertisements, by sender and
// receiver. If several events may match, all of them are candidates.
func (r *records) matches() map[pair][]match {
	sent := map[advertState][]event{}
	for _, name := range r.names {
		for _, e := range r.nodes[name] {
			if s, ok := sentState(&e); ok {
				sent[s] = append(sent[s], e)
			}
		}
	}
	out := map[pair][]match{}
	received := 0
	for _, name := range r.names {
		list := r.nodes[name]
		for i := len(list) - 1; i >= 0; i-- {
			e, sender := &list[i], r.at[list[i].Peer]
			s, ok := receivedState(list[:i], e, sender)
			if !ok || sender == "" || sender == name {
				continue
			}
			received++
			candidates := sent[s]
			for _, c := range candidates[max(0, len(candidates)-maxCandidates):] {
				if p := (pair{sender, name}); len(out[p]) < maxSights {
					out[p] = append(out[p], match{received, e.when.Sub(c.when), c.Delay.Duration(), e.Delay.Duration()})
				}
			}
		}
	}
	return out
}

// Limits of the comparison, the newest first: for a received one, and for two clocks.
const (
	maxCandidates = 200
	maxSights     = 5000
)

// advertState is the content of a node's advertisements for an instance from some moment on.
type advertState struct {
	node, instance string
	priority       int // 0: it holds the VIP
}

func sentState(e *event) (s advertState, ok bool) {
	switch {
	case e.Kind == events.State && e.State == events.Master:
		return advertState{e.Node, e.Instance, 0}, true
	case e.Kind == events.Effective && e.Priority < e.Own:
		return advertState{e.Node, e.Instance, e.Priority}, true
	}
	return s, false
}

// receivedState returns the received content, if that was new then: that of a node which was
// cut off may be old, and so may be a change that is new only since the receiver changed
// itself. before are the earlier events of the receiver.
func receivedState(before []event, e *event, sender string) (s advertState, ok bool) {
	changed := recentChanges(before, e)
	switch {
	case e.Kind == events.HigherReceived && e.Priority > e.Own && changed[events.Effective]: // from a holder whose priority fell
		return advertState{sender, e.Instance, 0}, true
	case e.Kind == events.LowerReceived && e.Own == 0 && len(changed) == 0: // by a backup, from a holder whose priority fell
		return advertState{sender, e.Instance, e.Priority}, true
	}
	return s, false
}

// recentChanges returns the kinds of changes of the receiver just before.
func recentChanges(before []event, e *event) map[events.Kind]bool {
	out := map[events.Kind]bool{}
	for i := len(before) - 1; i >= 0 && i > len(before)-20; i-- {
		b := &before[i]
		if b.Boot != e.Boot || e.Up-b.Up > events.MillisOf(5*time.Second) {
			break
		}
		switch b.Kind {
		case events.State, events.Effective, events.KeepalivedStarting, events.KeepalivedReload, events.Late:
			if b.Instance == "" || b.Instance == e.Instance {
				out[b.Kind] = true
			}
		}
	}
	return out
}

// minMatches is the number of matches that make a clock wrong: others may have been lost.
const minMatches = 2

// clocksAgree reports whether most matches fit right clocks. With many events, or at regular times,
// some fit another difference, too, by chance.
func clocksAgree(list []match, most time.Duration) bool {
	received, fits := map[int]bool{}, map[int]bool{}
	for _, s := range list {
		received[s.received] = true
		if s.fits(most) {
			fits[s.received] = true
		}
	}
	return len(fits)*2 >= len(received)
}

// agreeingBounds returns the bounds if the clocks are right.
func agreeingBounds(list []match, most time.Duration) (b clockBounds, ok bool) {
	for _, s := range list {
		if s.fits(most) {
			b = narrow(b, clockBounds{low: -jitter - s.early - max(s.took, 0), high: most + s.late - min(s.took, 0), seen: 1})
			ok = true
		}
	}
	return b, ok
}

// bounds returns the bounds of the sender's clock difference: most matches agree on the right
// one, while wrong matches differ at random.
func bounds(list []match, most time.Duration) (b clockBounds, ok bool) {
	list = slices.SortedFunc(slices.Values(list), func(a, b match) int { return cmp.Compare(a.took, b.took) })
	all := map[int]bool{}
	best, end, votes, again := 0, 0, 0, false
	for i := range list {
		received, n := map[int]bool{}, i
		for ; n < len(list) && list[n].took <= list[i].took+most; n++ {
			received[list[n].received] = true
		}
		all[list[i].received] = true
		switch {
		case len(received) > votes:
			best, end, votes, again = i, n, len(received), false
		case len(received) == votes && list[i].took > list[best].took+most:
			again = true // others are as many
		}
	}
	if again || votes < minMatches || votes*2 < len(all) {
		return b, false // ambiguous
	}
	first, last := list[best].took, list[end-1].took
	// The delay is at least zero, but for the jitter, and at most that long.
	return clockBounds{low: -first - jitter, high: most - last, seen: votes}, true
}

func narrow(a, b clockBounds) clockBounds {
	if a.seen == 0 {
		return b
	}
	low, high := max(a.low, b.low), min(a.high, b.high)
	if low > high { // drift, or a clock that was set: the middle
		low, high = (low+high)/2, (low+high)/2
	}
	return clockBounds{low, high, a.seen + b.seen}
}

func (r *records) interval(node string) (most time.Duration) {
	for _, e := range r.nodes[node] {
		if e.Settings != nil {
			most = max(most, time.Duration(e.Settings.AdvertIntervalMS)*time.Millisecond)
		}
	}
	return min(max(most, 0), 40*time.Second)
}

// solve returns how far each clock is ahead of most nodes', in high, with the precision in low.
// Clocks that agree, or are unknown, are left out.
func (r *records) solve(edges map[pair]clockBounds) map[string]clockBounds {
	next := map[string][]string{}
	for _, p := range slices.SortedFunc(maps.Keys(edges), func(a, b pair) int { return slices.Compare(a[:], b[:]) }) {
		next[p[1]] = append(next[p[1]], p[0])
	}
	out := map[string]clockBounds{}
	// reach visits the clocks that can be compared with one, only agreeing ones or all.
	reach := func(reached []string, seen map[string]bool, agree bool) []string {
		for i := 0; i < len(reached); i++ {
			for _, c := range next[reached[i]] {
				b := edges[pair{c, reached[i]}]
				right := b.low <= 0 && b.high >= 0
				if seen[c] || agree && !right {
					continue
				}
				if base := out[reached[i]]; !right || base.high != 0 {
					out[c] = clockBounds{low: (b.high-b.low)/2 + base.low, high: base.high + nearest(b), seen: b.seen}
				}
				seen[c] = true
				reached = append(reached, c)
			}
		}
		return reached
	}
	var most []string
	seen := map[string]bool{}
	for _, c := range slices.Sorted(maps.Keys(next)) {
		if seen[c] {
			continue
		}
		seen[c] = true
		if same := reach([]string{c}, seen, true); len(same) > len(most) {
			most = same
		}
	}
	seen = map[string]bool{}
	for _, c := range most {
		seen[c] = true
	}
	reach(most, seen, false)
	return out
}

// nearest returns the best estimate of a clock's difference: the middle.
func nearest(b clockBounds) time.Duration {
	if b.low <= 0 && b.high >= 0 {
		return 0
	}
	return (b.low + b.high) / 2
}
