package doctor

import (
	"cmp"
	"net/netip"
	"slices"
	"sort"
	"time"

	"github.com/vipgen/vipgen/internal/events"
	"github.com/vipgen/vipgen/internal/lists"
)

// span is a span in which a node held the VIP of an instance, by its keepalived.
type span struct {
	node     string
	from, to time.Time
	// open: the record ends before it; vague: its end is unknown: the agent ended by force,
	// some time between to and until.
	open, vague bool
	until       time.Time
}

func (s *span) ends() bool { return !s.open }

func (s *span) covers(t time.Time) bool { return !t.Before(s.from) && (s.open || t.Before(s.to)) }

// maxSpans bounds the examined spans of an instance, the newest.
const maxSpans = 4000

func holdings(node, instance string, list []event) (out []span) {
	var now *span
	var last time.Time    // event of this run
	var changed time.Time // last change of state that keepalived recorded
	begin := func(t time.Time) {
		if now == nil {
			now = &span{node: node, from: t}
		}
	}
	end := func(t time.Time) {
		if now != nil {
			now.to = t
			out = append(out, *now)
			now = nil
		}
	}
	for i := range list {
		e := &list[i]
		ours := e.Instance == instance
		if e.Kind == events.State && ours {
			changed = e.when
		}
		switch {
		case e.Kind == events.State && ours && e.State == events.Master:
			begin(e.when)
		case e.Kind == events.Held && ours && e.when.Sub(changed) > publish: // its record is missing
			begin(e.when)
		case e.Kind == events.State && ours, e.Kind == events.Lost && ours:
			end(e.when)
		case e.Kind == events.KeepalivedDied, e.Kind == events.KeepalivedStopped, e.Kind == events.AgentStopped, e.Kind == events.KeepalivedStarting:
			end(e.when)
		case e.Kind == events.AgentStarted && now != nil:
			now.vague, now.until = true, e.when
			end(last)
		}
		last = e.when
	}
	if now != nil {
		now.open, now.to = true, last
		out = append(out, *now)
	}
	return out
}

const (
	// settleTime without a change ends a move.
	settleTime = time.Second
	// handOver is how long a node holds a VIP after another took it: until it receives that
	// one's advertisement.
	handOver = 100 * time.Millisecond
	// longestMove bounds a move: a VIP held by two nodes for longer is two moves, there and
	// back.
	longestMove = time.Minute
)

func (r *records) movesOf(instance string) (out []Move) {
	spans := lists.FlatMap(r.names, func(name string) []span { return holdings(name, instance, r.nodes[name]) })
	slices.SortStableFunc(spans, func(a, b span) int { return a.from.Compare(b.from) })
	spans = spans[max(0, len(spans)-maxSpans):]
	r.settle(instance, spans)
	var changes []time.Time
	for _, s := range spans {
		changes = append(changes, s.from)
		if s.ends() {
			changes = append(changes, s.to)
		}
	}
	slices.SortFunc(changes, time.Time.Compare)
	for len(changes) > 0 {
		n := 1
		for n < len(changes) && changes[n].Sub(changes[0]) < longestMove {
			gap := changes[n].Sub(changes[n-1])
			if gap >= settleTime && len(at(spans, changes[n-1])) == 1 {
				break
			}
			n++
		}
		if m, moved := r.move(instance, spans, changes[0], changes[n-1]); moved {
			out = append(out, m)
		}
		changes = changes[n:]
	}
	return out
}

// settle determines the end of a span that ended with its node, or may have: another node
// misses its advertisements for the usual time after it.
func (r *records) settle(instance string, spans []span) {
	for i := range spans {
		s := &spans[i]
		if !s.vague && !s.open {
			continue
		}
		received := r.lastReceived(s, instance)
		for k := range spans {
			o := &spans[k]
			lag := max(r.lagOf(s.node, s.to), r.lagOf(o.node, o.from))
			if o.node == s.node || o.from.Before(s.from) || s.to.After(o.from.Add(lag)) || !received.Before(o.from) {
				continue // it continued
			}
			silent := r.silentSince(o, instance)
			if s.vague && silent.After(s.until.Add(lag)) {
				continue // the next run had begun long before
			}
			if s.open {
				s.open, s.vague, s.until = false, true, o.from
			}
			s.to = later(s.to, earlier(silent, s.until))
			break
		}
	}
}

// lastReceived returns the last time that another node received the holder of a span.
func (r *records) lastReceived(s *span, instance string) (last time.Time) {
	until := s.until
	if !s.vague {
		until = s.to.Add(longestMove)
	}
	for _, name := range r.names {
		if name == s.node {
			continue
		}
		for _, e := range r.eventsIn(name, s.from, until, func(e *event) bool { return e.Instance == instance && e.Peer.IsValid() }) {
			if r.at[e.Peer] == s.node && (e.Kind == events.HigherReceived || e.Kind == events.LowerReceived) {
				last = later(last, e.when)
			}
		}
	}
	return last
}

// silentSince returns the time of the last advertisement at a node that took the VIP, or of the
// announced stop of the holder.
func (r *records) silentSince(s *span, instance string) time.Time {
	since := s.from.Add(-r.downTime(s.node))
	for i := range r.nodes[s.node] {
		e := &r.nodes[s.node][i]
		if e.Kind == events.HolderStops && e.Instance == instance && !e.when.Before(since) && !e.when.After(s.from) {
			return e.when
		}
	}
	return since
}

// downTime returns how long a backup waits for advertisements (RFC 9568, section 6.1), by the
// node's last settings: 3 intervals and the skew, which is at most one more.
func (r *records) downTime(node string) time.Duration {
	interval := cmp.Or(r.interval(node), time.Second)
	return 3*interval + interval*3/4
}

const (
	// lag is the longest delay of a record, and the largest difference of clocks without
	// notice.
	lag = 500 * time.Millisecond
	// longestLag bounds the delays that nodes report.
	longestLag = 10 * time.Second
	// nearby is the time around a moment in which a late node counts.
	nearby = 5 * time.Second
)

// lagOf returns lag for a node around a moment, with its reported delays.
func (r *records) lagOf(node string, t time.Time) time.Duration {
	var most time.Duration
	for _, e := range r.eventsIn(node, t.Add(-nearby), t.Add(nearby), func(e *event) bool { return e.Delay > 0 }) {
		most = max(most, e.Delay.Duration())
	}
	return lag + min(most, longestLag)
}

func (r *records) eventsIn(node string, from, to time.Time, match func(*event) bool) (out []*event) {
	list := r.nodes[node]
	i := sort.Search(len(list), func(i int) bool { return !list[i].when.Before(from) })
	for ; i < len(list) && !list[i].when.After(to); i++ {
		if match(&list[i]) {
			out = append(out, &list[i])
		}
	}
	return out
}

// at returns the nodes that hold the VIP at a moment, sorted.
func at(spans []span, t time.Time) []string {
	out := []string{}
	for i := range spans {
		if spans[i].covers(t) {
			out = append(out, spans[i].node)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// move returns the move from the first change of holders to the last. moved is false where one
// node holds it before and after, alone all the time.
func (r *records) move(instance string, spans []span, first, last time.Time) (m Move, moved bool) {
	before := first.Add(-time.Nanosecond)
	m = Move{At: first.UTC(), Instances: []string{instance}, From: at(spans, before), To: at(spans, last), Evidence: []Evidence{}}
	if vip := r.vips[instance]; vip.IsValid() {
		m.VIPs = []netip.Addr{vip}
	}
	end := last
	if len(m.To) != 1 {
		end = nextBegin(spans, last)
	}
	unheld, both := time.Duration(0), time.Duration(0)
	edges := []time.Time{first, end}
	for i := range spans {
		for _, t := range []time.Time{spans[i].from, spans[i].to} {
			if t.After(first) && t.Before(end) {
				edges = append(edges, t)
			}
		}
	}
	slices.SortFunc(edges, time.Time.Compare)
	var run [2]time.Duration // current run
	var gap time.Time        // start of the longest time without a holder
	for i := range edges[1:] {
		length := edges[i+1].Sub(edges[i])
		switch n := len(at(spans, edges[i])); {
		case n == 0:
			run[0], run[1] = run[0]+length, 0
		case n > 1:
			run[0], run[1] = 0, run[1]+length
		default:
			run = [2]time.Duration{}
		}
		if run[0] > unheld {
			gap = edges[i+1].Add(-run[0])
		}
		unheld, both = max(unheld, run[0]), max(both, run[1])
	}
	if len(m.From) == 0 && !r.heldBefore(spans, first) {
		unheld = 0 // the record begins
	}
	if len(m.To) == 0 {
		if name := r.unreadHolder(instance, last); name != "" {
			m.To, unheld = []string{name}, 0 // the time of its takeover is unknown
		}
	}
	m.Unheld, m.SplitBrain = events.MillisOf(unheld), events.MillisOf(both)
	if slices.Equal(m.From, m.To) && both == 0 && unheld == 0 {
		return m, false
	}
	for i := range spans {
		if s := &spans[i]; !s.from.Before(first) && !s.from.After(last) && (s.open || s.to.Sub(s.from) >= handOver) && !slices.Contains(m.From, s.node) && !slices.Contains(m.To, s.node) {
			m.Meanwhile = union(m.Meanwhile, []string{s.node})
		}
	}
	c := &analysis{records: r, instance: instance, move: &m, spans: spans, first: first, last: last}
	if unheld > publish {
		c.gap = gap
	}
	m.Cause = c.cause()
	m.Evidence = c.evidence()
	m.Holdings = around(spans, instance, first, last)
	return m, true
}

func (r *records) heldBefore(spans []span, t time.Time) bool {
	return slices.ContainsFunc(spans, func(s span) bool { return s.from.Before(t) })
}

// unreadHolder returns the address that a node observed as holder soon after a moment without a
// record: that of a node which was not read, or whose record starts later. Empty for none.
func (r *records) unreadHolder(instance string, t time.Time) string {
	for _, name := range r.names {
		for _, e := range r.eventsIn(name, t, t.Add(holderPoll), func(e *event) bool { return e.Kind == events.Holder && e.Instance == instance }) {
			if r.unread(e.Peer, t) {
				return cmp.Or(e.Name, e.Peer.String())
			}
		}
	}
	return ""
}

// holderPoll is how much later a node observes the holder of a VIP.
const holderPoll = 30 * time.Second

// unread reports whether the host with an address has no record of a moment.
func (r *records) unread(a netip.Addr, t time.Time) bool {
	for _, e := range r.nodes[r.at[a]] {
		if !e.Again { // of the state at the start of a record, only the last change is known
			return e.when.After(t)
		}
	}
	return true
}

// nextBegin returns the next takeover of the VIP by a node, else the end of the record.
func nextBegin(spans []span, t time.Time) time.Time {
	end := t
	for i := range spans {
		if spans[i].from.After(t) {
			return spans[i].from
		}
		end = later(end, spans[i].to)
	}
	return end
}

// drawn is the drawn time before and after a move.
const drawn = 5 * time.Second

func around(spans []span, instance string, first, last time.Time) (out []Holding) {
	for _, s := range spans {
		if s.from.After(last.Add(drawn)) || s.ends() && s.to.Before(first.Add(-drawn)) {
			continue
		}
		h := Holding{Instance: instance, Node: s.node, From: s.from.UTC()}
		if s.ends() {
			h.To = s.to.UTC()
		}
		out = append(out, h)
	}
	slices.SortStableFunc(out, func(a, b Holding) int { return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.Node, b.Node)) })
	return out
}
