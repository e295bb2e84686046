package doctor

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/vipgen/vipgen/internal/events"
)

// consult finds the cause of a move.
type consult struct {
	*records
	instance    string
	move        *Move
	spans       []span
	first, last time.Time
	// gap is when a long time without a holder began; zero for none.
	gap time.Time

	shown []*event // that the cause rests on
}

const (
	// lookBack is how long before a node lost the VIP its reason may have come.
	lookBack = 10 * time.Second
	// longestStop is more than a pod's grace period.
	longestStop = 30 * time.Second
	// publish is how much later something may be recorded that the agent publishes, once a
	// second.
	publish = 2 * time.Second
)

// slack is how much later than it happened a node may have recorded what it did in the move.
func (c *consult) slack(node string) time.Duration {
	return max(c.lagOf(node, c.first), c.lagOf(node, c.last))
}

// of matches events of kinds that are about the instance, or about none.
func (c *consult) of(kinds ...events.Kind) func(*event) bool {
	return func(e *event) bool {
		return slices.Contains(kinds, e.Kind) && (e.Instance == "" || e.Instance == c.instance)
	}
}

// show has events among the evidence.
func (c *consult) show(list ...*event) {
	for _, e := range list {
		if !slices.Contains(c.shown, e) {
			c.shown = append(c.shown, e)
		}
	}
}

// holding is the span of the node that held the VIP before, and taking that of the one
// that took it first; nil where there is none.
func (c *consult) holding() *span {
	for i := range c.spans {
		if s := &c.spans[i]; s.covers(c.first.Add(-time.Nanosecond)) {
			return s
		}
	}
	return nil
}

func (c *consult) taking(than string) *span {
	for i := range c.spans {
		if s := &c.spans[i]; s.node != than && !s.from.Before(c.first) && !s.from.After(c.last) {
			return s
		}
	}
	return nil
}

// cause goes through what is possible, the surest first.
func (c *consult) cause() Cause {
	if found := c.allDown(); found != nil {
		return found.complete()
	}
	a := c.holding()
	if a == nil {
		return c.unheldBefore()
	}
	b := c.taking(a.node)
	if b != nil {
		c.show(c.in(b.node, b.from.Add(-c.slack(b.node)), b.from, c.of(events.SilentHolder, events.HolderStops, events.State))...)
	}
	// When the holder left, by its own word, or was last known to hold the VIP.
	leaves := a.to
	if a.open || a.vague || a.to.After(c.last) {
		leaves = c.first
		if b != nil {
			leaves = b.from
		}
	} else {
		c.show(c.in(a.node, leaves.Add(-c.slack(a.node)), leaves, c.of(events.State, events.Lost, events.KeepalivedDied, events.KeepalivedStopped, events.AgentStopped))...)
	}
	type rule = func(a, b *span, leaves time.Time) *Cause
	rules := []rule{c.silent, c.split}
	if b == nil || leaves.Sub(b.from) <= max(2*c.downTime(b.node), c.slack(a.node), c.slack(b.node)) {
		// It was the holder that began; else another node took the VIP long before.
		rules = append([]rule{c.settings, c.stopped, c.died, c.ended, c.link, c.leftOut, c.priority, c.fault}, rules...)
	}
	for _, rule := range rules {
		if found := rule(a, b, leaves); found != nil {
			if found.Sure == Certain && (c.vague(a.node) || b != nil && c.vague(b.node)) {
				found.Sure = Likely
			}
			return found.complete()
		}
	}
	return Cause{Code: NotKnown, Sure: Unknown, Node: a.node, Text: "nothing in the records of the nodes says why"}.complete()
}

// allDown: no node that can hold the VIP ran while it had no holder.
func (c *consult) allDown() *Cause {
	if c.gap.IsZero() {
		return nil
	}
	var down []string
	var shown []*event
	sure := Certain
	for _, name := range c.names {
		if len(c.in(name, time.Time{}, c.gap, c.of(events.Instance, events.State))) == 0 {
			continue // it can not hold the VIP, or was not there yet
		}
		list := c.nodes[name]
		i := slices.IndexFunc(list, func(e event) bool { return e.when.After(c.gap.Add(publish)) })
		switch {
		case i < 0:
			sure = Likely // it is not back
		case list[i].Kind != events.AgentStarted:
			return nil
		default:
			shown = append(shown, &list[i])
		}
		if c.vague(name) {
			sure = Likely
		}
		down = append(down, name)
	}
	if len(down) < 2 || len(shown) == 0 {
		return nil
	}
	if len(c.missing()) > 0 {
		sure = Likely
	}
	c.show(shown...)
	return &Cause{Code: AllDown, Sure: sure, Text: "all nodes that can hold the VIP were down at once: " + strings.Join(down, ", ")}
}

// vague reports whether events of a node are missing around the move, or may be of another time:
// what is there may have another reason.
func (c *consult) vague(node string) bool {
	if c.doubt[node] {
		return true
	}
	list := c.nodes[node]
	for i := range list {
		if e := &list[i]; e.Missed > 0 && !e.when.Before(c.first.Add(-lookBack)) && (i == 0 || !list[i-1].when.After(c.last.Add(lookBack))) {
			return true
		}
	}
	return false
}

// settings: keepalived on the holder read other VRRP settings.
func (c *consult) settings(a, b *span, leaves time.Time) *Cause {
	reloads := c.in(a.node, leaves.Add(-publish), leaves.Add(c.slack(a.node)), c.of(events.KeepalivedReload, events.KeepalivedStarting))
	changed := c.in(a.node, leaves.Add(-publish), leaves.Add(publish), func(e *event) bool {
		return e.Kind == events.Settings && c.others(e) || e.Kind == events.Move && (e.State == events.Moving || e.State == events.Over)
	})
	if a.vague || len(reloads) == 0 || len(changed) == 0 {
		return nil
	}
	c.show(reloads...)
	c.show(changed...)
	said := changed[len(changed)-1].Settings.String()
	for _, e := range changed {
		if e.Kind == events.Move {
			return &Cause{Code: SettingsChanged, Sure: Certain, Node: a.node, Text: "the nodes moved to other VRRP settings together: " + said}
		}
	}
	return &Cause{Code: SettingsChanged, Sure: Certain, Node: a.node, Text: a.node + " has other VRRP settings: " + said}
}

// others reports whether settings are others than the node had before.
func (c *consult) others(e *event) bool {
	before := c.in(e.Node, time.Time{}, e.when.Add(-time.Nanosecond), c.of(events.Settings))
	return len(before) > 0 && *before[len(before)-1].Settings != *e.Settings
}

// stopped: the agent of the holder was told to end.
func (c *consult) stopped(a, b *span, leaves time.Time) *Cause {
	told := c.in(a.node, leaves.Add(-lookBack), leaves.Add(c.slack(a.node)), c.of(events.AgentStopping))
	if len(told) == 0 || c.startedSince(a.node, told[0].when, leaves) {
		return nil
	}
	c.show(told...)
	ended := c.in(a.node, told[0].when, told[0].when.Add(longestStop), c.of(events.AgentStopped))
	if len(ended) > 0 && ended[0].Why != "" {
		c.show(ended[0])
		return &Cause{Code: AgentFailed, Sure: Certain, Node: a.node, Text: "the agent on " + a.node + " failed, and ended: " + ended[0].Why}
	}
	text, sure := "the agent on "+a.node+" was told to end: the pod was stopped or replaced", Certain
	if len(ended) == 0 && !c.livedOn(a.node, told[0].when.Add(longestStop)) {
		sure = Likely // it may have failed, and say so as the last thing
	}
	if again := c.nextStart(a.node, told[0].when); again != nil && again.First {
		c.show(again)
		text = a.node + " was shut down or rebooted"
	}
	return &Cause{Code: AgentStopped, Sure: sure, Node: a.node, Text: text}
}

// livedOn says whether a node has recorded something at a moment or later.
func (c *consult) livedOn(node string, t time.Time) bool {
	list := c.nodes[node]
	return len(list) > 0 && !list[len(list)-1].when.Before(t)
}

// wentOn says whether the run of a node's agent has recorded anything after what it publishes of
// a moment.
func (c *consult) wentOn(node string, t time.Time) bool {
	until := t.Add(longAfter)
	if again := c.nextStart(node, t); again != nil {
		until = again.when.Add(-time.Nanosecond)
	}
	return len(c.in(node, t.Add(publish), until, func(*event) bool { return true })) > 0
}

// longAfter is more than a record has.
const longAfter = 100 * 365 * 24 * time.Hour

func (c *consult) startedSince(node string, since, until time.Time) bool {
	return len(c.in(node, since.Add(time.Nanosecond), until, c.of(events.AgentStarted))) > 0
}

// nextStart is the next start of a node's agent; nil for none.
func (c *consult) nextStart(node string, since time.Time) *event {
	list := c.nodes[node]
	for i := range list {
		if e := &list[i]; e.Kind == events.AgentStarted && e.when.After(since) {
			return e
		}
	}
	return nil
}

// died: keepalived on the holder ended although it was wanted.
func (c *consult) died(a, b *span, leaves time.Time) *Cause {
	found := c.in(a.node, leaves.Add(-c.downTime(a.node)-c.slack(a.node)), leaves.Add(c.slack(a.node)), c.of(events.KeepalivedDied))
	if len(found) == 0 {
		return nil
	}
	c.show(found[0])
	return &Cause{Code: KeepalivedDied, Sure: Certain, Node: a.node, Text: "keepalived on " + a.node + " ended by itself, or was killed; the agent starts it again"}
}

// ended: the run of the holder's agent ended without a word of it.
func (c *consult) ended(a, b *span, leaves time.Time) *Cause {
	if !a.vague {
		// Of a node that loses its power, its link may go a moment before the rest.
		down := c.in(a.node, leaves.Add(-c.slack(a.node)), leaves.Add(c.slack(a.node)), c.of(events.Link))
		again := c.nextStart(a.node, leaves)
		if len(down) == 0 || again == nil || len(c.in(a.node, leaves.Add(publish), again.when.Add(-time.Nanosecond), func(*event) bool { return true })) > 0 ||
			len(c.in(a.node, leaves, again.when, c.of(events.AgentStopping, events.Lost, events.LeftOut, events.KeepalivedStopped))) > 0 {
			return nil
		}
	}
	if b != nil && a.to.After(b.from.Add(c.slack(b.node))) {
		return nil // it recorded more after that: it ended for another reason, later
	}
	since := leaves.Add(-c.slack(a.node))
	if a.vague {
		since = earlier(since, a.until.Add(-time.Nanosecond))
	}
	again := c.nextStart(a.node, since)
	if again == nil {
		return &Cause{Code: NodeDown, Sure: Likely, Node: a.node, Text: "the record of " + a.node + " ends before the VIP moved: it was down, or cut off, and has not been back when the record was read"}
	}
	c.show(again)
	sure := Certain
	if back(again, leaves).Sub(leaves) > soon {
		sure = Likely // it may have been cut off first, and ended later, as by fencing
	}
	if b != nil && c.slack(b.node) > lag {
		sure = Likely // it may have taken the VIP before, for another reason
	}
	if gone := c.goodbye(a.node, leaves); len(gone) > 0 {
		c.show(gone...)
		sure = Likely // it may have been told to end, and could not write that
	}
	if again.First {
		return &Cause{Code: NodeDown, Sure: sure, Node: a.node, Text: a.node + " lost its power, was reset or crashed: it booted later, and its agent was not told to end before"}
	}
	return &Cause{Code: AgentKilled, Sure: sure, Node: a.node, Text: "the agent on " + a.node + " ended by force, and keepalived with it: it started again without a reboot, and was not told to end before"}
}

// goodbye is what other nodes heard by which a holder gives a VIP away: a lower priority, or
// that it stops.
func (c *consult) goodbye(node string, leaves time.Time) (out []*event) {
	for _, name := range c.names {
		out = append(out, c.in(name, leaves.Add(-publish), leaves.Add(c.slack(name)), func(e *event) bool {
			return e.Instance == c.instance && (e.Kind == events.HolderStops || e.Kind == events.LowerHeard && e.Own == 0 && c.at[e.Peer] == node)
		})...)
	}
	return out
}

// soon is how soon a node is back that ended when it lost the VIP, and not later.
const soon = 20 * time.Second

// back is when a node that ended at some time was back, at the latest.
func back(again *event, ended time.Time) time.Time {
	if booted := again.when.Add(-again.Up.Duration()); again.First && booted.After(ended) {
		return booted
	}
	return again.when
}

// link: the interface went down.
func (c *consult) link(a, b *span, leaves time.Time) *Cause {
	down := c.in(a.node, leaves.Add(-publish), leaves.Add(c.slack(a.node)), func(e *event) bool { return e.Kind == events.Link && e.State == events.Down })
	if len(down) == 0 || !c.faulty(a.node, leaves) {
		return nil // of another interface
	}
	sure, on := Likely, c.interfaceOf(a.node, leaves)
	for _, e := range down {
		if e.Interface == on || on == "" {
			sure = Certain
		}
	}
	// Of a node that loses its power, its link may go a moment before the rest.
	if !c.wentOn(a.node, leaves) {
		sure = Likely
	}
	c.show(down...)
	return &Cause{Code: LinkLost, Sure: sure, Node: a.node, Text: "interface " + down[0].Interface + " of " + a.node + " went down"}
}

// interfaceOf is where a node has the instance, as it recorded it last; empty for unknown.
func (c *consult) interfaceOf(node string, t time.Time) string {
	list := c.in(node, time.Time{}, t, c.of(events.Instance))
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1].Interface
}

// faulty reports whether keepalived on a node went to state FAULT when it lost the VIP.
func (c *consult) faulty(node string, leaves time.Time) bool {
	return len(c.in(node, leaves.Add(-c.slack(node)), leaves.Add(c.slack(node)), func(e *event) bool {
		return e.Kind == events.State && e.Instance == c.instance && e.State == events.Fault
	})) > 0
}

// leftOut: the agent stopped keepalived, or took the VIP out of its configuration.
func (c *consult) leftOut(a, b *span, leaves time.Time) *Cause {
	why := c.in(a.node, leaves.Add(-publish), leaves.Add(publish), func(e *event) bool { return e.Kind == events.LeftOut && len(e.Reasons) > 0 })
	done := c.in(a.node, leaves.Add(-c.slack(a.node)), leaves.Add(publish), c.of(events.KeepalivedStopped, events.KeepalivedReload))
	if len(why) == 0 || len(done) == 0 {
		return nil
	}
	c.show(why...)
	c.show(done...)
	sure := Likely // the reason may be of another VIP
	if done[len(done)-1].Kind == events.KeepalivedStopped || strings.HasPrefix(why[0].Reasons[0], c.instance+": ") {
		sure = Certain
	}
	return &Cause{Code: LeftOut, Sure: sure, Node: a.node, Text: a.node + " leaves the VIP out: " + why[0].Reasons[0]}
}

// fault: keepalived on the holder can not hold the VIP any more.
func (c *consult) fault(a, b *span, leaves time.Time) *Cause {
	if !c.faulty(a.node, leaves) {
		return nil
	}
	if found := c.failed(a.node, leaves); found != nil {
		return found
	}
	return &Cause{Code: CheckFailed, Sure: Likely, Node: a.node, Text: "keepalived on " + a.node + " is in state FAULT, and no check that failed is recorded"}
}

// unheldBefore: no node whose record was read held the VIP.
func (c *consult) unheldBefore() Cause {
	b := c.taking("")
	if b == nil {
		return Cause{Code: NotKnown, Sure: Unknown, Text: "nothing in the records of the nodes says why"}.complete()
	}
	why := c.in(b.node, b.from.Add(-c.slack(b.node)), b.from, c.of(events.SilentHolder, events.HolderStops, events.State))
	c.show(why...)
	stops := slices.ContainsFunc(why, func(e *event) bool { return e.Kind == events.HolderStops })
	if h := c.knownHolder(b); h != nil {
		c.show(h)
		who := c.who(h.Peer, h.Name)
		text := who + " held the VIP, and was not heard any more; there is no record of it"
		if stops {
			text = "keepalived on " + who + " stopped, and said so; there is no record of it"
		}
		return Cause{Code: NoRecord, Sure: Unknown, Node: h.Name, Text: text}.complete()
	}
	if c.heldBefore(c.spans, c.first) {
		return Cause{Code: FirstHolder, Sure: Likely, Node: b.node, Text: "no node held the VIP; " + b.node + " was the first that could again"}.complete()
	}
	return Cause{Code: FirstHolder, Sure: Likely, Node: b.node, Text: b.node + " is the first holder in these records"}.complete()
}

// knownHolder is what a node knew of who held the VIP before, where there is no record of
// that then.
func (c *consult) knownHolder(b *span) *event {
	list := c.in(b.node, time.Time{}, b.from, c.of(events.Holder, events.AgentStarted))
	if len(list) == 0 || list[len(list)-1].Kind != events.Holder || !c.unread(list[len(list)-1].Peer, c.first) {
		return nil
	}
	return list[len(list)-1]
}

// who names a host by what is known of its address.
func (c *consult) who(a netip.Addr, name string) string {
	if name == "" {
		name = c.at[a]
	}
	if name != "" {
		return name
	}
	return a.String()
}

// evidence is what was shown, in the order of time.
func (c *consult) evidence() []Evidence {
	out := []Evidence{}
	for _, e := range c.shown {
		out = append(out, Evidence{At: e.when.UTC(), Node: e.Node, Kind: e.Kind, Text: describe(&e.Event)})
	}
	slices.SortStableFunc(out, func(a, b Evidence) int { return a.At.Compare(b.At) })
	return slices.Compact(out)
}
