// Package doctor explains why VIPs moved, from the event records of a cluster's agents
// (internal/events). Nodes may have no record, lines may be torn, clocks may differ, and the
// input is untrusted.
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
)

// Report is the diagnosis of a cluster. Times are those of most nodes' clocks, in UTC.
type Report struct {
	From    time.Time     `json:"from,omitzero"`
	To      time.Time     `json:"to,omitzero"`
	Nodes   []Node        `json:"nodes"`
	Missing []MissingPeer `json:"missing,omitempty"`
	// Clocks lists the clocks that differ from the others.
	Clocks []Clock `json:"clocks,omitempty"`
	// Moves are sorted by time.
	Moves []Move `json:"moves"`
}

// Node is a node with a record.
type Node struct {
	Name   string    `json:"name"`
	Role   string    `json:"role,omitempty"`
	Events int       `json:"events"`
	First  time.Time `json:"first"`
	Last   time.Time `json:"last"`
	// LeftOut counts events that the node dropped, since there were too many of a kind, and
	// Missed those that it could not write.
	LeftOut uint64 `json:"leftOut,omitempty"`
	Missed  uint64 `json:"missed,omitempty"`
}

// MissingPeer is the address of a peer without a record.
type MissingPeer struct {
	Address netip.Addr `json:"address"`
	// Name is the node's, where another one knew it.
	Name string `json:"name,omitempty"`
}

// Clock is a node's clock that differed from most others.
type Clock struct {
	Node string `json:"node"`
	// Ahead is how far it was ahead, negative where it was behind, in milliseconds, within
	// Precision.
	Ahead     events.Millis `json:"aheadMS"`
	Precision events.Millis `json:"precisionMS"`
	// Seen counts the advertisements, recorded by sender and receiver, that it is based on.
	Seen int `json:"seen"`
}

// Move is a VIP that went from one node to another, or that two nodes or none held for a while.
// VIPs that moved together for one reason are one Move.
type Move struct {
	At        time.Time    `json:"at"`
	VIPs      []netip.Addr `json:"vips,omitempty"`
	Instances []string     `json:"instances"`
	// From and To are the holders before and after: none, one, or several.
	From []string `json:"from"`
	To   []string `json:"to"`
	// Meanwhile are other nodes that held it in between, for at least 100 ms.
	Meanwhile []string `json:"meanwhile,omitempty"`
	// Unheld is how long no node held it by the records, and SplitBrain how long two did, in
	// milliseconds: the longest of the VIPs.
	Unheld     events.Millis `json:"withoutHolderMS"`
	SplitBrain events.Millis `json:"splitBrainMS"`
	Cause      Cause         `json:"cause"`
	// Evidence is the evidence for the cause, sorted by time.
	Evidence []Evidence `json:"evidence"`
	// Holdings are the holders around the move, for a drawing.
	Holdings []Holding `json:"holdings"`
	// Routed is set for VIPs by BGP, which several nodes hold at once.
	Routed bool `json:"bgp,omitempty"`
}

// noNode is the holder of a VIP without one.
const noNode = "no node"

// Path returns the holders of the VIP before, in between and after, in order; several at once
// are joined by "and".
func (m *Move) Path() []string {
	name := func(list []string) string { return cmp.Or(strings.Join(list, " and "), noNode) }
	out := []string{name(m.From)}
	if len(m.Meanwhile) > 0 {
		out = append(out, name(m.Meanwhile))
	}
	// The same node before and after: the event is in between.
	if slices.Equal(m.From, m.To) && len(m.From) > 0 && m.Unheld > 0 && (len(m.Meanwhile) == 0 || m.Cause.Code == AllDown) {
		out = append(out, noNode)
	}
	if last := name(m.To); last != out[len(out)-1] || len(out) == 1 {
		out = append(out, last)
	}
	return out
}

// Holding is a span in which a node held a VIP.
type Holding struct {
	Instance string    `json:"instance"`
	Node     string    `json:"node"`
	From     time.Time `json:"from"`
	To       time.Time `json:"to,omitzero"` // zero: until the end of the record
}

// Evidence is an event of a node.
type Evidence struct {
	At   time.Time   `json:"at"`
	Node string      `json:"node"`
	Kind events.Kind `json:"kind"`
	Text string      `json:"text"`
}

// event is an event with its time by most nodes' clocks.
type event struct {
	events.Event
	when time.Time
}

type records struct {
	names []string
	nodes map[string][]event // sorted by time
	at    map[netip.Addr]string
	vips  map[string]netip.Addr // by instance
	// doubt holds the nodes with uncertain clocks.
	doubt map[string]bool
}

// Diagnose returns the diagnosis of events in any order.
func Diagnose(list []events.Event) *Report {
	r := &records{nodes: map[string][]event{}, at: map[netip.Addr]string{}, vips: map[string]netip.Addr{}}
	routed := &records{nodes: map[string][]event{}}
	r.sort(lists.Filter(list, func(e events.Event) bool { return e.Job == "" }))
	routed.sort(lists.Filter(list, func(e events.Event) bool { return e.Job == jobBGP }))
	report := &Report{Nodes: []Node{}, Moves: []Move{}}
	r.addresses()
	report.Clocks = r.correct()
	routed.set(report.Clocks)
	for _, records := range []*records{r, routed} {
		for _, name := range records.names {
			report.addNode(name, records.nodes[name])
		}
	}
	slices.SortFunc(report.Nodes, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	report.Missing = r.missing()
	report.Moves = append(report.Moves, lists.FlatMap(r.instances(), r.movesOf)...)
	report.Moves = join(append(report.Moves, routed.routedMoves()...))
	return report
}

// jobBGP is the job that writes the records of VIPs by BGP.
var jobBGP = state.BGP{}.JobName()

// set corrects the times of nodes whose clocks differ.
func (r *records) set(clocks []Clock) {
	for _, c := range clocks {
		for i := range r.nodes[c.Node] {
			e := &r.nodes[c.Node][i]
			e.when = e.when.Add(-c.Ahead.Duration())
		}
	}
}

// sort stores the events of each node in the order in which they happened, without duplicates.
func (r *records) sort(list []events.Event) {
	by := map[string][]events.Event{}
	for _, e := range list {
		by[e.Node] = append(by[e.Node], e)
	}
	r.names = slices.Sorted(maps.Keys(by))
	r.names = r.names[:min(len(r.names), maxNodes)]
	for _, name := range r.names {
		list := by[name]
		slices.SortStableFunc(list, func(a, b events.Event) int { return cmp.Compare(a.Seq, b.Seq) })
		list = slices.CompactFunc(list, func(a, b events.Event) bool {
			return a.Seq == b.Seq && a.Boot == b.Boot && a.Up == b.Up && a.Kind == b.Kind
		})
		r.nodes[name] = order(once(list))
	}
}

// once drops repeated events: a file begins with the state at its start.
func once(list []events.Event) []events.Event {
	type told struct {
		boot           string
		up             events.Millis
		kind           events.Kind
		instance, name string
	}
	of := func(e *events.Event) told { return told{e.Boot, e.Up, e.Kind, e.Instance, e.Name} }
	known := map[told]bool{}
	for i := range list {
		if !list[i].Again {
			known[of(&list[i])] = true
		}
	}
	return slices.DeleteFunc(list, func(e events.Event) bool {
		again := e.Again && known[of(&e)]
		known[of(&e)] = true
		return again
	})
}

// order sorts a node's events, and dates each by the node's last clock in that boot: before, it
// may have been set. Dropped events are written later than they happened.
func order(list []events.Event) (out []event) {
	boots := map[string]int{}
	booted := map[string]time.Time{}
	for _, e := range list {
		if _, known := boots[e.Boot]; !known {
			boots[e.Boot] = len(boots)
		}
		booted[e.Boot] = e.Time.Add(-e.Up.Duration())
	}
	out = append(out, lists.Map(list, func(e events.Event) event { return event{e, booted[e.Boot].Add(e.Up.Duration())} })...)
	slices.SortStableFunc(out, func(a, b event) int {
		return cmp.Or(cmp.Compare(boots[a.Boot], boots[b.Boot]), cmp.Compare(a.Up, b.Up))
	})
	return out
}

func (r *records) addresses() {
	for _, name := range r.names {
		for _, e := range r.nodes[name] {
			switch {
			case e.Kind == events.Instance && e.Source.IsValid():
				r.at[e.Source] = name
			case e.Kind == events.Holder && e.Peer.IsValid() && r.nodes[e.Name] != nil && r.at[e.Peer] == "":
				r.at[e.Peer] = e.Name
			}
			if e.VIP.IsValid() && e.Instance != "" {
				r.vips[e.Instance] = e.VIP
			}
		}
	}
}

func (r *records) missing() (out []MissingPeer) {
	found := map[netip.Addr]string{}
	for _, name := range r.names {
		for _, e := range r.nodes[name] {
			switch e.Kind {
			case events.Instance:
				for _, a := range e.Peers {
					if _, known := found[a]; !known {
						found[a] = ""
					}
				}
			case events.Holder:
				if e.Peer.IsValid() && e.Name != "" {
					found[e.Peer] = e.Name
				}
			}
		}
	}
	for _, a := range slices.SortedFunc(maps.Keys(found), netip.Addr.Compare) {
		_, read := r.at[a]
		if _, named := r.nodes[found[a]]; !read && !named {
			out = append(out, MissingPeer{Address: a, Name: found[a]})
		}
	}
	return out
}

func (r *records) instances() []string {
	names := map[string]bool{}
	for _, list := range r.nodes {
		for i := range list {
			e := &list[i]
			if e.Instance != "" && (e.Kind == events.State || e.Kind == events.Held) {
				names[e.Instance] = true
			}
		}
	}
	out := slices.Sorted(maps.Keys(names))
	return out[:min(len(out), maxInstances)]
}

// Limits far above what a cluster has.
const (
	maxInstances = 256
	maxNodes     = 512
)

func (p *Report) addNode(name string, list []event) {
	i := slices.IndexFunc(p.Nodes, func(n Node) bool { return n.Name == name })
	if i < 0 {
		i = len(p.Nodes)
		p.Nodes = append(p.Nodes, Node{Name: name, First: list[0].when, Last: list[0].when})
	}
	n := &p.Nodes[i]
	n.Events += len(list)
	for _, e := range list {
		n.LeftOut, n.Missed = n.LeftOut+e.LeftOut, n.Missed+e.Missed
		n.First, n.Last = earlier(n.First, e.when), later(n.Last, e.when)
		if e.Role != "" {
			n.Role = e.Role
		}
	}
	if p.From.IsZero() {
		p.From, p.To = n.First, n.Last
	}
	p.From, p.To = earlier(p.From, n.First), later(p.To, n.Last)
}

func earlier(a, b time.Time) time.Time {
	return slices.MinFunc([]time.Time{a, b}, time.Time.Compare)
}

func later(a, b time.Time) time.Time {
	return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare)
}

// joinTime is the longest time between moves of VIPs that are shown as one.
const joinTime = 2 * time.Second

// join merges moves of several VIPs with the same nodes and cause.
func join(moves []Move) (out []Move) {
	slices.SortStableFunc(moves, func(a, b Move) int { return a.At.Compare(b.At) })
	for _, m := range moves {
		same := func(o *Move) bool {
			return m.At.Sub(o.At) <= joinTime && !slices.Contains(o.Instances, m.Instances[0]) &&
				slices.Equal(o.From, m.From) && slices.Equal(o.To, m.To) && o.Cause.Code == m.Cause.Code && o.Cause.Sure == m.Cause.Sure
		}
		i := -1
		for k := len(out) - 1; k >= 0 && m.At.Sub(out[k].At) <= joinTime; k-- {
			if same(&out[k]) {
				i = k
			}
		}
		if i < 0 {
			out = append(out, m)
			continue
		}
		o := &out[i]
		o.VIPs, o.Instances = append(o.VIPs, m.VIPs...), append(o.Instances, m.Instances...)
		o.Unheld, o.SplitBrain = max(o.Unheld, m.Unheld), max(o.SplitBrain, m.SplitBrain)
		o.Holdings = append(o.Holdings, m.Holdings...)
		o.Meanwhile = union(o.Meanwhile, m.Meanwhile)
		o.Evidence = lists.Add(o.Evidence, m.Evidence...)
		slices.SortStableFunc(o.Evidence, func(a, b Evidence) int { return a.At.Compare(b.At) })
	}
	for i := range out {
		slices.SortFunc(out[i].VIPs, netip.Addr.Compare)
		slices.SortFunc(out[i].Instances, strings.Compare)
	}
	return out
}

func union(a, b []string) []string {
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}
