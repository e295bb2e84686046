package doctor

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/vipgen/vipgen/internal/events"
)

// span is a time for which a node held the VIP of an instance, as keepalived there saw it.
type span struct {
	node     string
	from, to time.Time
	// open says that the record ends while it lasts; vague that nobody knows when it ended:
	// the agent ended by force, some time between to and until.
	open, vague bool
	until       time.Time
}

func (s *span) ends() bool { return !s.open }

// covers says whether it lasts at a moment.
func (s *span) covers(t time.Time) bool { return !t.Before(s.from) && (s.open || t.Before(s.to)) }

// spansOf are those of an instance, in the order of their begin.
func (r *records) spansOf(instance string) (out []span) {
	for _, name := range r.names {
		out = append(out, holdings(name, instance, r.nodes[name])...)
	}
	slices.SortStableFunc(out, func(a, b span) int { return a.from.Compare(b.from) })
	return out[max(0, len(out)-maxSpans):]
}

// maxSpans bounds what is looked at of an instance, the newest: a record has no more than
// 20 changes at once and one in five minutes from then on.
const maxSpans = 4000

// holdings are the spans of one node.
func holdings(node, instance string, list []event) (out []span) {
	var now *span
	var last time.Time // event of this run
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
		switch {
		case e.Kind == events.State && ours && e.State == events.Master:
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
	// settleTime is how long nothing changes after a move that is over.
	settleTime = time.Second
	// longestMove bounds a move: two nodes that hold a VIP for longer are two moves, one
	// there and one back.
	longestMove = time.Minute
)

// movesOf are the moves of an instance's VIP.
func (r *records) movesOf(instance string) (out []Move) {
	spans := r.spansOf(instance)
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

// settle finds out when a span ended that ended with its node, or may have: when another
// node missed its advertisements, they had been missing for as long as that takes.
func (r *records) settle(instance string, spans []span) {
	for i := range spans {
		s := &spans[i]
		if !s.vague && !s.open {
			continue
		}
		for _, o := range spans[i+1:] {
			if o.node == s.node || s.vague && o.from.After(s.until) || !s.to.Before(o.from) {
				continue // its record says that it went on
			}
			silent := r.silentSince(&o, instance)
			if s.open {
				s.open, s.vague, s.until = false, true, o.from
			}
			s.to = later(s.to, silent)
			break
		}
	}
}

// silentSince is when the last advertisement came to a node that took the VIP, or the
// holder's goodbye.
func (r *records) silentSince(s *span, instance string) time.Time {
	since := s.from.Add(-r.downTime(s.node, instance))
	for i := range r.nodes[s.node] {
		e := &r.nodes[s.node][i]
		if e.Kind == events.HolderStops && e.Instance == instance && !e.when.Before(since) && !e.when.After(s.from) {
			return e.when
		}
	}
	return since
}

// downTime is how long a backup waits for advertisements (RFC 9568, section 6.1), by the
// settings that the node had last: 3 intervals and the skew, which is at most one more.
func (r *records) downTime(node, instance string) time.Duration {
	interval := r.interval(node)
	if interval == 0 {
		interval = time.Second
	}
	return 3*interval + interval*3/4
}

// at are the nodes that hold the VIP at a moment, sorted.
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

// move is what happened from the first change of who holds a VIP to the last. It is none
// where the same node holds it before and after, alone all the time.
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
	var run [2]time.Duration // of now
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
		unheld, both = max(unheld, run[0]), max(both, run[1])
	}
	if len(m.From) == 0 && !r.heldBefore(spans, first) {
		unheld = 0 // the record begins
	}
	m.Unheld, m.SplitBrain = events.MillisOf(unheld), events.MillisOf(both)
	if slices.Equal(m.From, m.To) && both == 0 && unheld == 0 {
		return m, false
	}
	c := &consult{records: r, instance: instance, move: &m, spans: spans, first: first, last: last}
	m.Cause = c.cause()
	m.Evidence = c.evidence()
	m.Holdings = around(spans, instance, first, last)
	return m, true
}

func (r *records) heldBefore(spans []span, t time.Time) bool {
	return slices.ContainsFunc(spans, func(s span) bool { return s.from.Before(t) })
}

// nextBegin is when a node takes the VIP next, else when the record ends.
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

// drawn is how much before and after a move is drawn.
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
