package doctor

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/events"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// A VIP by BGP is held by the nodes that routers use for it: those that announce it with the best
// preference, in a session that carries it. Records of the job bgp show these, but not what routers
// do: a dead node holds its VIPs until its record begins again, or its kernel booted.

// routedNode holds the announcements and sessions of a node.
type routedNode struct {
	announced map[netip.Addr]events.Event
	sessions  map[string]events.Event // by router
}

func newRoutedNode() routedNode {
	return routedNode{announced: map[netip.Addr]events.Event{}, sessions: map[string]events.Event{}}
}

// holds reports whether a router has the VIP from the node: a session carries the VIPs of its own
// family, and, with extended next hops, those of the other one.
func (n *routedNode) holds(vip netip.Addr) bool {
	e, ok := n.announced[vip]
	if !ok || !e.OK {
		return false
	}
	same, any := false, false
	for _, session := range n.sessions {
		if session.Peer.Is4() == vip.Is4() || session.Peer.IsLinkLocalUnicast() { // by interface
			same = true
			if session.OK {
				return true
			}
		}
		any = any || session.OK
	}
	return e.State == "table" || any && !same
}

// routedKinds are the events that can change the holders of a VIP.
var routedKinds = []events.Kind{events.AgentStarted, events.AgentStopping, events.AgentStopped, events.Announced, events.Session}

// apply applies an event of routedKinds.
func (n *routedNode) apply(e *event) {
	switch e.Kind {
	case events.AgentStarted, events.AgentStopped:
		*n = newRoutedNode()
	case events.Announced:
		n.announced[e.VIP] = e.Event
	case events.Session:
		n.sessions[e.Name] = e.Event
	}
}

// routedStep is an event that may change the holders of a VIP.
type routedStep struct {
	at time.Time
	*event
	// before is the event before it on its node, stopping the signal to end that the node's agent had
	// received; nil for none.
	before, stopping *event
}

// maxRouted and maxVIPs are many times what a cluster has in a month, the newest steps.
const (
	maxRouted = 20_000
	maxVIPs   = 32
)

// steps returns the steps of all nodes, sorted by time.
func (r *records) steps() (out []routedStep) {
	for _, name := range r.names {
		var before, stopping *event
		for i := range r.nodes[name] {
			e := &r.nodes[name][i]
			at := e.when
			if before != nil && e.Boot != before.Boot {
				at = later(before.when, e.when.Add(-e.Up.Duration()))
			}
			if slices.Contains(routedKinds, e.Kind) {
				out = append(out, routedStep{at, e, before, stopping})
			}
			switch before = e; e.Kind {
			case events.AgentStopping:
				stopping = e
			case events.AgentStarted, events.AgentStopped:
				stopping = nil
			}
		}
	}
	slices.SortStableFunc(out, func(a, b routedStep) int { return a.at.Compare(b.at) })
	return out[max(0, len(out)-maxRouted):]
}

// routedMoves returns the changes of the holders of VIPs by BGP that have a cause: nodes that
// no longer hold one, and sessions that do not carry it.
func (r *records) routedMoves() (out []Move) {
	steps := r.steps()
	vips := map[netip.Addr]bool{}
	for i := range steps {
		if steps[i].Kind == events.Announced {
			vips[steps[i].VIP] = true
		}
	}
	list := slices.SortedFunc(maps.Keys(vips), netip.Addr.Compare)
	for _, vip := range list[:min(len(list), maxVIPs)] {
		w := &routedVIP{records: r, vip: vip, nodes: map[string]int{}}
		now := map[string]*routedNode{}
		for i := range steps {
			w.follow(&steps[i], now)
		}
		w.end()
		out = append(out, w.moves...)
	}
	return out
}

// routedVIP follows a VIP.
type routedVIP struct {
	*records
	vip   netip.Addr
	nodes map[string]int // preferences of the nodes that hold it
	moves []Move
	open  *Move // the last one while no node holds the VIP, or more may belong to it
	last  time.Time
	gap   time.Time // since no node holds it
	spans []Holding
}

// best returns the nodes that routers use, sorted.
func (w *routedVIP) best() []string {
	out := []string{}
	if len(w.nodes) == 0 {
		return out
	}
	least := slices.Min(slices.Collect(maps.Values(w.nodes)))
	for name, p := range w.nodes {
		if p == least {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// follow applies a step.
func (w *routedVIP) follow(s *routedStep, now map[string]*routedNode) {
	n := now[s.Node]
	if n == nil {
		begins := newRoutedNode()
		n = &begins
		now[s.Node] = n
	}
	before := w.best()
	n.apply(s.event)
	if delete(w.nodes, s.Node); n.holds(w.vip) {
		w.nodes[s.Node] = n.announced[w.vip].Priority
	}
	after := w.best()
	w.draw(before, after, s.at)
	if w.open != nil && len(before) > 0 && s.at.Sub(w.last) >= settleTime {
		w.end()
	}
	lost := slices.DeleteFunc(slices.Clone(before), func(name string) bool { return slices.Contains(after, name) })
	switch {
	case len(lost) > 0, n.announced[w.vip].OK && s.Kind == events.Session && s.Why != "" && s.Why != state.BFDPending: // which begins a session
		w.add(s, before, lost)
	case w.open == nil:
		return // nodes that begin to hold it
	}
	if len(after) == 0 && w.gap.IsZero() {
		w.gap = s.at
	} else if len(after) > 0 && !w.gap.IsZero() {
		w.closeGap(s.at)
	}
	w.open.To, w.last = after, s.at
}

func (w *routedVIP) closeGap(at time.Time) {
	w.open.Unheld = max(w.open.Unheld, events.MillisOf(at.Sub(w.gap)))
	w.gap = time.Time{}
}

// draw keeps the spans of the holders.
func (w *routedVIP) draw(before, after []string, at time.Time) {
	for i := range w.spans {
		if h := &w.spans[i]; h.To.IsZero() && !slices.Contains(after, h.Node) {
			h.To = at.UTC()
		}
	}
	for _, name := range after {
		if !slices.Contains(before, name) {
			w.spans = append(w.spans, Holding{Instance: w.vip.String(), Node: name, From: at.UTC()})
		}
	}
}

// add adds a cause to the open move, or begins one. The last one is the move's.
func (w *routedVIP) add(s *routedStep, before, lost []string) {
	cause, shown := w.causeOf(s, lost)
	if w.open == nil {
		w.open = &Move{At: s.at.UTC(), VIPs: []netip.Addr{w.vip}, Instances: []string{w.vip.String()}, From: before, Evidence: []Evidence{}, Routed: true}
	} else if o := &w.open.Cause; !strings.Contains(o.Text, cause.Text) {
		cause.Text = o.Text + "; " + cause.Text
	} else {
		cause.Text = o.Text
	}
	w.open.Cause = cause.complete()
	for _, e := range shown {
		w.open.Evidence = lists.Add(w.open.Evidence, Evidence{At: e.when.UTC(), Node: e.Node, Kind: e.Kind, Text: describe(&e.Event)})
	}
}

// end ends the open move.
func (w *routedVIP) end() {
	if w.open == nil {
		return
	}
	if !w.gap.IsZero() {
		for _, name := range w.names {
			list := w.records.nodes[name]
			w.last = later(w.last, list[len(list)-1].when)
		}
		w.closeGap(w.last)
	}
	slices.SortStableFunc(w.open.Evidence, func(a, b Evidence) int { return a.At.Compare(b.At) })
	for _, h := range w.spans {
		if !h.From.After(w.last.Add(drawn)) && (h.To.IsZero() || !h.To.Before(w.open.At.Add(-drawn))) {
			w.open.Holdings = append(w.open.Holdings, h)
		}
	}
	w.moves = append(w.moves, *w.open)
	w.open = nil
}

// causeOf returns why nodes no longer hold the VIP after a step of one of them, or why a session
// does not carry it, and the evidence.
func (w *routedVIP) causeOf(s *routedStep, lost []string) (Cause, []*event) {
	on := s.Node
	if len(lost) > 0 && !slices.Contains(lost, on) {
		return Cause{Code: BetterNode, Sure: Certain, Node: on, Text: on + " announces the VIP with a better preference"}, []*event{s.event}
	}
	if t := s.stopping; t != nil {
		if s.Kind == events.AgentStopped && s.Why != "" {
			return Cause{Code: AgentFailed, Sure: Certain, Node: on, Text: "the agent on " + on + " failed, and ended: " + s.Why}, []*event{t, s.event}
		}
		return Cause{Code: AgentStopped, Sure: Certain, Node: on, Text: "the agent on " + on + " received a signal to end: the pod was stopped or replaced"}, []*event{t, s.event}
	}
	switch s.Kind {
	case events.AgentStarted:
		return w.endedByForce(s), []*event{s.before, s.event}
	case events.Session:
		return sessionCause(s), []*event{s.event}
	}
	return w.withdrawn(s)
}

// endedByForce: the record begins again, and did not end.
func (w *routedVIP) endedByForce(s *routedStep) Cause {
	since := ": some time since " + s.before.when.UTC().Format("15:04:05") + ", its last event"
	if s.Boot != s.before.Boot {
		return Cause{Code: NodeDown, Sure: Certain, Node: s.Node, Text: s.Node + " lost its power, was reset or crashed" + since}
	}
	return Cause{Code: AgentKilled, Sure: Certain, Node: s.Node, Text: "the agent on " + s.Node + " ended by force, and started again without a reboot" + since}
}

// sessionCauses maps problems of sessions to causes.
var sessionCauses = []struct {
	problem string // its beginning
	code    Code
}{
	{state.HoldTimeExpired, HoldTimeExpired}, {state.RouterRefused, RouterRefused}, {state.BFDDown, BFDDown},
	{state.OtherSpeaker, OtherSpeaker}, {state.BFDPending, BFDDown}, {state.BFDMissing, BFDMissing}, {state.SessionEnded, SessionLost}, {state.ConnectionLost, SessionLost},
}

func sessionCause(s *routedStep) Cause {
	c := Cause{Code: SessionLost, Sure: Certain, Node: s.Node, Text: "session of " + s.Node + " with router " + s.Name + ": " + cmp.Or(s.Why, s.State)}
	for _, known := range sessionCauses {
		if strings.HasPrefix(s.Why, known.problem) {
			c.Code = known.code
			return c
		}
	}
	c.Sure = Likely
	return c
}

// withdrawn: the node withdrew the VIP, or announces it with a worse preference.
func (w *routedVIP) withdrawn(s *routedStep) (Cause, []*event) {
	text := s.Node + " withdraws the VIP: " + s.Why
	if s.OK {
		text = s.Node + " announces the VIP behind other nodes: " + s.Why
	}
	if reason, known := vrrp.ParseLeftOut(s.Why); known {
		return Cause{Code: LeftOut, Sure: Certain, Node: s.Node, Text: text, Next: reason.Next()}, []*event{s.event}
	}
	c := &analysis{records: w.records}
	if found := c.failed(s.Node, s.when); found != nil {
		found.Text = text + ", as " + strings.TrimPrefix(found.Text, "on "+s.Node+" ")
		return *found, append(c.shown, s.event)
	}
	return Cause{Code: CheckFailed, Sure: Likely, Node: s.Node, Text: text}, []*event{s.event}
}
