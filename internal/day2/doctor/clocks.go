package doctor

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/vipgen/vipgen/internal/events"
)

// Clocks that differ are found by advertisements that both sides saw: keepalived on one
// node says what it does (takes a VIP, has another priority), and on another one that it
// heard of that, from there. What was heard was sent before, and not long before. Where the
// nodes' clocks do not contradict this, they are right.

// transit is how long after its cause an advertisement is recorded by its receiver, at
// most, besides an interval: keepalived and the agent may both be late.
const transit = 500 * time.Millisecond

// jitter is how late the sender's agent may have recorded what it sent.
const jitter = 250 * time.Millisecond

// sight is that something which one node sent may be what another heard: which of those that
// were heard it is, and how much later that was, by their own clocks.
type sight struct {
	heard int
	took  time.Duration
	// early and late are by how much the nodes may have recorded it late.
	early, late time.Duration
}

// fits reports whether it may be that, if both clocks are right.
func (s sight) fits(most time.Duration) bool {
	return s.took >= -jitter-s.early && s.took <= most+s.late
}

// pair are a sender and a receiver.
type pair = [2]string

// between are bounds of by how much a clock is ahead of another one.
type between struct {
	low, high time.Duration
	seen      int
}

// correct brings the times of all nodes to those of most clocks, and gives those that
// differed.
func (r *records) correct() (out []Clock) {
	edges := map[pair]between{}
	sights := r.sights()
	for p, list := range sights {
		most := r.interval(p[0]) + transit
		within := bounds
		if right(list, most) {
			within = agreeing
		}
		b, ok := within(list, most)
		if !ok {
			continue
		}
		// Both ways, the tighter bounds count.
		edges[p] = narrow(edges[p], b)
		edges[pair{p[1], p[0]}] = narrow(edges[pair{p[1], p[0]}], between{-b.high, -b.low, b.seen})
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
	for p, list := range r.sights() {
		if !right(list, r.interval(p[0])+transit) {
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

// sights are the pairs of what was sent and heard, by sender and receiver. Where several
// events may be what was heard, all of them are candidates.
func (r *records) sights() map[pair][]sight {
	sent := map[said][]event{}
	for _, name := range r.names {
		for _, e := range r.nodes[name] {
			if s, ok := sends(&e); ok {
				sent[s] = append(sent[s], e)
			}
		}
	}
	out := map[pair][]sight{}
	heard := 0
	for _, name := range r.names {
		list := r.nodes[name]
		for i := len(list) - 1; i >= 0; i-- {
			e, sender := &list[i], r.at[list[i].Peer]
			s, ok := hears(list[:i], e, sender)
			if !ok || sender == "" || sender == name {
				continue
			}
			heard++
			candidates := sent[s]
			for _, c := range candidates[max(0, len(candidates)-maxCandidates):] {
				if p := (pair{sender, name}); len(out[p]) < maxSights {
					out[p] = append(out[p], sight{heard, e.when.Sub(c.when), c.Delay.Duration(), e.Delay.Duration()})
				}
			}
		}
	}
	return out
}

// Bounds of what is compared, the newest first: for one that was heard, and for two clocks.
const (
	maxCandidates = 200
	maxSights     = 5000
)

// said is what advertisements of a node say of an instance from some moment on.
type said struct {
	node, instance string
	priority       int // 0: that it holds the VIP
}

func sends(e *event) (s said, ok bool) {
	switch {
	case e.Kind == events.State && e.State == events.Master:
		return said{e.Node, e.Instance, 0}, true
	case e.Kind == events.Effective && e.Priority < e.Own:
		return said{e.Node, e.Instance, e.Priority}, true
	}
	return s, false
}

// hears returns what was heard from a sender, if that was new then: that of a node which was
// cut off may be old, and so may be what is news only since the receiver changed itself.
// before are the events of the receiver before.
func hears(before []event, e *event, sender string) (s said, ok bool) {
	changed := lately(before, e)
	switch {
	case e.Kind == events.HigherHeard && e.Priority > e.Own && changed[events.Effective]: // by a holder whose priority fell
		return said{sender, e.Instance, 0}, true
	case e.Kind == events.LowerHeard && e.Own == 0 && len(changed) == 0: // by a backup, of a holder whose priority fell
		return said{sender, e.Instance, e.Priority}, true
	}
	return s, false
}

// lately are the kinds of changes that the receiver went through just before.
func lately(before []event, e *event) map[events.Kind]bool {
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

// fewest sights make a clock wrong: others may have been lost.
const fewest = 2

// right reports whether most of what was heard does not contradict that both clocks are right.
// Where much happens, or at regular times, some of it fits another difference, too, by chance.
func right(list []sight, most time.Duration) bool {
	heard, fits := map[int]bool{}, map[int]bool{}
	for _, s := range list {
		heard[s.heard] = true
		if s.fits(most) {
			fits[s.heard] = true
		}
	}
	return len(fits)*2 >= len(heard)
}

// agreeing are bounds of clocks that are right.
func agreeing(list []sight, most time.Duration) (b between, ok bool) {
	for _, s := range list {
		if s.fits(most) {
			b = narrow(b, between{low: -jitter - s.early - max(s.took, 0), high: most + s.late - min(s.took, 0), seen: 1})
			ok = true
		}
	}
	return b, ok
}

// bounds are those of how much the sender's clock is ahead: most of what was heard agrees on
// the right ones, while what does not belong together differs at random.
func bounds(list []sight, most time.Duration) (b between, ok bool) {
	list = slices.SortedFunc(slices.Values(list), func(a, b sight) int { return cmp.Compare(a.took, b.took) })
	all := map[int]bool{}
	best, end, votes, again := 0, 0, 0, false
	for i := range list {
		heard, n := map[int]bool{}, i
		for ; n < len(list) && list[n].took <= list[i].took+most; n++ {
			heard[list[n].heard] = true
		}
		all[list[i].heard] = true
		switch {
		case len(heard) > votes:
			best, end, votes, again = i, n, len(heard), false
		case len(heard) == votes && list[i].took > list[best].took+most:
			again = true // others are as many
		}
	}
	if again || votes < fewest || votes*2 < len(all) {
		return b, false // nothing tells which are right
	}
	first, last := list[best].took, list[end-1].took
	// It took no less than nothing, but for the jitter, and at most that long.
	return between{low: -first - jitter, high: most - last, seen: votes}, true
}

func narrow(a, b between) between {
	if a.seen == 0 {
		return b
	}
	low, high := max(a.low, b.low), min(a.high, b.high)
	if low > high { // drift, or a clock that was set: the middle
		low, high = (low+high)/2, (low+high)/2
	}
	return between{low, high, a.seen + b.seen}
}

// interval is the longest that a node had.
func (r *records) interval(node string) (most time.Duration) {
	for _, e := range r.nodes[node] {
		if e.Settings != nil {
			most = max(most, time.Duration(e.Settings.AdvertIntervalMS)*time.Millisecond)
		}
	}
	return min(max(most, 0), 40*time.Second)
}

// solve returns by how much each clock is ahead of those of most nodes, in high, with the
// precision in low. Clocks that agree, or that nothing is known of, are left out.
func (r *records) solve(edges map[pair]between) map[string]between {
	next := map[string][]string{}
	for _, p := range slices.SortedFunc(maps.Keys(edges), func(a, b pair) int { return slices.Compare(a[:], b[:]) }) {
		next[p[1]] = append(next[p[1]], p[0])
	}
	out := map[string]between{}
	// reach visits the clocks that can be compared with one, those that agree alone or all.
	reach := func(reached []string, seen map[string]bool, agree bool) []string {
		for i := 0; i < len(reached); i++ {
			for _, c := range next[reached[i]] {
				b := edges[pair{c, reached[i]}]
				right := b.low <= 0 && b.high >= 0
				if seen[c] || agree && !right {
					continue
				}
				if base := out[reached[i]]; !right || base.high != 0 {
					out[c] = between{low: (b.high-b.low)/2 + base.low, high: base.high + nearest(b), seen: b.seen}
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

// nearest is what is known best of how far ahead a clock is: the middle.
func nearest(b between) time.Duration {
	if b.low <= 0 && b.high >= 0 {
		return 0
	}
	return (b.low + b.high) / 2
}
