package doctor

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/vipgen/vipgen/internal/events"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/vrrp"
)

type analysis struct {
	*records
	instance    string
	move        *Move
	spans       []span
	first, last time.Time
	// gap is the start of a long time without a holder, or zero.
	gap time.Time

	shown []*event // evidence of the cause
}

const (
	// lookBack is the time before a node lost the VIP in which its reason may be.
	lookBack = 10 * time.Second
	// longestStop is more than a pod's grace period.
	longestStop = 30 * time.Second
	// publish is the delay of records that the agent publishes once a second.
	publish = 2 * time.Second
)

// slack returns the delay of a node's records around the move.
func (c *analysis) slack(node string) time.Duration {
	return max(c.lagOf(node, c.first), c.lagOf(node, c.last))
}

// matching returns a filter for events of kinds, of the instance or of none.
func (c *analysis) matching(kinds ...events.Kind) func(*event) bool {
	return func(e *event) bool {
		return slices.Contains(kinds, e.Kind) && (e.Instance == "" || e.Instance == c.instance)
	}
}

func (c *analysis) addEvidence(list ...*event) {
	c.shown = lists.Add(c.shown, list...)
}

// holding returns the span of the previous holder, and taking that of the first node that took
// it; nil for none.
func (c *analysis) holding() *span {
	for i := range c.spans {
		if s := &c.spans[i]; s.covers(c.first.Add(-time.Nanosecond)) {
			return s
		}
	}
	return nil
}

func (c *analysis) taking(than string) *span {
	for i := range c.spans {
		if s := &c.spans[i]; s.node != than && !s.from.Before(c.first) && !s.from.After(c.last) {
			return s
		}
	}
	return nil
}

// cause tries the possible causes, the most certain first.
func (c *analysis) cause() Cause {
	if found := c.allDown(); found != nil {
		return found.complete()
	}
	a := c.holding()
	if a == nil {
		return c.unheldBefore()
	}
	b := c.taking(a.node)
	if b != nil {
		c.addEvidence(c.eventsIn(b.node, b.from.Add(-c.slack(b.node)), b.from, c.matching(events.SilentHolder, events.HolderStops, events.State))...)
	}
	// When the holder left by its own record, or was last known to hold the VIP.
	leaves := a.to
	if a.open || a.vague || a.to.After(c.last) {
		leaves = c.first
		if b != nil {
			leaves = b.from
		}
	} else {
		c.addEvidence(c.eventsIn(a.node, leaves.Add(-c.slack(a.node)), leaves, c.matching(events.State, events.Lost, events.KeepalivedDied, events.KeepalivedStopped, events.AgentStopped))...)
	}
	type rule = func(a, b *span, leaves time.Time) *Cause
	rules := []rule{c.holderSilent, c.split}
	if b == nil || leaves.Sub(b.from) <= max(2*c.downTime(b.node), c.slack(a.node), c.slack(b.node)) {
		// The holder began; else another node took the VIP long before.
		rules = append([]rule{c.settingsChanged, c.agentStopped, c.keepalivedDied, c.agentEnded, c.linkLost, c.leftOut, c.priority, c.keepalivedFault}, rules...)
	}
	for _, rule := range rules {
		if found := rule(a, b, leaves); found != nil {
			if found.Sure == Certain && (c.uncertain(a.node) || b != nil && c.uncertain(b.node)) {
				found.Sure = Likely
			}
			return found.complete()
		}
	}
	return Cause{Code: NotKnown, Sure: Unknown, Node: a.node, Text: "the records of the nodes do not show the cause"}.complete()
}

// allDown: no node that can hold the VIP ran while it had no holder.
func (c *analysis) allDown() *Cause {
	if c.gap.IsZero() {
		return nil
	}
	var down []string
	var shown []*event
	sure := Certain
	for _, name := range c.names {
		if len(c.eventsIn(name, time.Time{}, c.gap, c.matching(events.Instance, events.State))) == 0 {
			continue // it cannot hold the VIP, or did not exist yet
		}
		list := c.nodes[name]
		i := slices.IndexFunc(list, func(e event) bool { return e.when.After(c.gap.Add(publish)) })
		switch {
		case i < 0:
			sure = Likely // not back yet
		case list[i].Kind != events.AgentStarted:
			return nil
		default:
			shown = append(shown, &list[i])
		}
		if c.uncertain(name) {
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
	c.addEvidence(shown...)
	return &Cause{Code: AllDown, Sure: sure, Text: "all nodes that can hold the VIP were down at once: " + strings.Join(down, ", ")}
}

// uncertain reports whether events of a node are missing around the move, or have uncertain times:
// the existing ones may have another reason.
func (c *analysis) uncertain(node string) bool {
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

// settingsChanged: keepalived on the holder read other VRRP settings.
func (c *analysis) settingsChanged(a, b *span, leaves time.Time) *Cause {
	reloads := c.eventsIn(a.node, leaves.Add(-publish), leaves.Add(c.slack(a.node)), c.matching(events.KeepalivedReload, events.KeepalivedStarting))
	changed := c.eventsIn(a.node, leaves.Add(-publish), leaves.Add(publish), func(e *event) bool {
		return e.Kind == events.Settings && c.settingsDiffer(e) || e.Kind == events.Migration && (e.State == events.Migrating || e.State == events.Over)
	})
	if a.vague || len(reloads) == 0 || len(changed) == 0 {
		return nil
	}
	c.addEvidence(reloads...)
	c.addEvidence(changed...)
	said := changed[len(changed)-1].Settings.String()
	for _, e := range changed {
		if e.Kind == events.Migration {
			return &Cause{Code: SettingsChanged, Sure: Certain, Node: a.node, Text: "the nodes migrated to other VRRP settings together: " + said}
		}
	}
	return &Cause{Code: SettingsChanged, Sure: Certain, Node: a.node, Text: a.node + " has other VRRP settings: " + said}
}

func (c *analysis) settingsDiffer(e *event) bool {
	before := c.eventsIn(e.Node, time.Time{}, e.when.Add(-time.Nanosecond), c.matching(events.Settings))
	return len(before) > 0 && *before[len(before)-1].Settings != *e.Settings
}

// agentStopped: the holder's agent received a signal to end.
func (c *analysis) agentStopped(a, b *span, leaves time.Time) *Cause {
	told := c.eventsIn(a.node, leaves.Add(-lookBack), leaves.Add(c.slack(a.node)), c.matching(events.AgentStopping))
	if len(told) == 0 || len(c.eventsIn(a.node, told[0].when.Add(time.Nanosecond), leaves, c.matching(events.AgentStarted))) > 0 {
		return nil // none, or the agent started again since
	}
	c.addEvidence(told...)
	ended := c.eventsIn(a.node, told[0].when, told[0].when.Add(longestStop), c.matching(events.AgentStopped))
	if len(ended) > 0 && ended[0].Why != "" {
		c.addEvidence(ended[0])
		return &Cause{Code: AgentFailed, Sure: Certain, Node: a.node, Text: "the agent on " + a.node + " failed, and ended: " + ended[0].Why}
	}
	text, sure := "the agent on "+a.node+" received a signal to end: the pod was stopped or replaced", Certain
	if len(ended) == 0 && !c.recordsUntil(a.node, told[0].when.Add(longestStop)) {
		sure = Likely // it may have failed, and recorded this last
	}
	if again := c.nextStart(a.node, told[0].when); again != nil && again.First {
		c.addEvidence(again)
		text = a.node + " was shut down or rebooted"
	}
	return &Cause{Code: AgentStopped, Sure: sure, Node: a.node, Text: text}
}

// ranAfter reports whether the run of a node's agent recorded anything after its publication of a
// moment.
func (c *analysis) ranAfter(node string, t time.Time) bool {
	until := t.Add(longAfter)
	if again := c.nextStart(node, t); again != nil {
		until = again.when.Add(-time.Nanosecond)
	}
	return len(c.eventsIn(node, t.Add(publish), until, func(*event) bool { return true })) > 0
}

// longAfter is longer than any record.
const longAfter = 100 * 365 * 24 * time.Hour

func (c *analysis) nextStart(node string, since time.Time) *event {
	list := c.nodes[node]
	for i := range list {
		if e := &list[i]; e.Kind == events.AgentStarted && e.when.After(since) {
			return e
		}
	}
	return nil
}

// keepalivedDied: keepalived on the holder ended although it was wanted.
func (c *analysis) keepalivedDied(a, b *span, leaves time.Time) *Cause {
	found := c.eventsIn(a.node, leaves.Add(-c.downTime(a.node)-c.slack(a.node)), leaves.Add(c.slack(a.node)), c.matching(events.KeepalivedDied))
	if len(found) == 0 {
		return nil
	}
	c.addEvidence(found[0])
	return &Cause{Code: KeepalivedDied, Sure: Certain, Node: a.node, Text: "keepalived on " + a.node + " ended unexpectedly, or was killed; the agent starts it again"}
}

// agentEnded: the run of the holder's agent ended without a record of it.
func (c *analysis) agentEnded(a, b *span, leaves time.Time) *Cause {
	if !a.vague {
		// When a node loses its power, its link may go down a moment before the rest.
		down := c.eventsIn(a.node, leaves.Add(-c.slack(a.node)), leaves.Add(c.slack(a.node)), c.matching(events.Link))
		again := c.nextStart(a.node, leaves)
		if len(down) == 0 || again == nil || len(c.eventsIn(a.node, leaves.Add(publish), again.when.Add(-time.Nanosecond), func(*event) bool { return true })) > 0 ||
			len(c.eventsIn(a.node, leaves, again.when, c.matching(events.AgentStopping, events.Lost, events.LeftOut, events.KeepalivedStopped))) > 0 {
			return nil
		}
	}
	if b != nil && a.to.After(b.from.Add(c.slack(b.node))) {
		return nil // later records: it ended for another reason
	}
	since := leaves.Add(-c.slack(a.node))
	if a.vague {
		since = earlier(since, a.until.Add(-time.Nanosecond))
	}
	again := c.nextStart(a.node, since)
	if again == nil {
		return &Cause{Code: NodeDown, Sure: Likely, Node: a.node, Text: "the record of " + a.node + " ends before the VIP moved: it was down, or cut off, and has not been back when the record was read"}
	}
	c.addEvidence(again)
	sure := Certain
	if back(again, leaves).Sub(leaves) > soon {
		sure = Likely // it may have been cut off first, and ended later, as by fencing
	}
	if b != nil && c.slack(b.node) > lag {
		sure = Likely // it may have taken the VIP before, for another reason
	}
	if gone := c.goodbye(a.node, leaves); len(gone) > 0 {
		c.addEvidence(gone...)
		sure = Likely // it may have received a signal without being able to record it
	}
	if again.First {
		return &Cause{Code: NodeDown, Sure: sure, Node: a.node, Text: a.node + " lost its power, was reset or crashed: it booted later, and its agent received no signal to end before"}
	}
	return &Cause{Code: AgentKilled, Sure: sure, Node: a.node, Text: "the agent on " + a.node + " ended by force, and keepalived with it: it started again without a reboot, and received no signal to end before"}
}

// goodbye returns the records of other nodes of how a holder gave a VIP away: a lower priority,
// or its stop.
func (c *analysis) goodbye(node string, leaves time.Time) (out []*event) {
	for _, name := range c.names {
		out = append(out, c.eventsIn(name, leaves.Add(-publish), leaves.Add(c.slack(name)), func(e *event) bool {
			return e.Instance == c.instance && (e.Kind == events.HolderStops || e.Kind == events.LowerReceived && e.Own == 0 && c.at[e.Peer] == node)
		})...)
	}
	return out
}

// soon is the longest absence of a node that ended when it lost the VIP, and not later.
const soon = 20 * time.Second

// back returns the latest time by which a node that ended was back.
func back(again *event, ended time.Time) time.Time {
	if booted := again.when.Add(-again.Up.Duration()); again.First && booted.After(ended) {
		return booted
	}
	return again.when
}

// linkLost: the interface went down.
func (c *analysis) linkLost(a, b *span, leaves time.Time) *Cause {
	down := c.eventsIn(a.node, leaves.Add(-publish), leaves.Add(c.slack(a.node)), func(e *event) bool { return e.Kind == events.Link && e.State == events.Down })
	if len(down) == 0 || !c.faulty(a.node, leaves) {
		return nil // another interface
	}
	sure, on := Likely, c.interfaceOf(a.node, leaves)
	for _, e := range down {
		if e.Interface == on || on == "" {
			sure = Certain
		}
	}
	// When a node loses its power, its link may go down a moment before the rest.
	if !c.ranAfter(a.node, leaves) {
		sure = Likely
	}
	c.addEvidence(down...)
	return &Cause{Code: LinkLost, Sure: sure, Node: a.node, Text: "interface " + down[0].Interface + " of " + a.node + " went down"}
}

// interfaceOf returns the interface of the instance in the node's last record, or "".
func (c *analysis) interfaceOf(node string, t time.Time) string {
	list := c.eventsIn(node, time.Time{}, t, c.matching(events.Instance))
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1].Interface
}

// faulty reports whether keepalived on a node entered state FAULT when it lost the VIP.
func (c *analysis) faulty(node string, leaves time.Time) bool {
	return len(c.eventsIn(node, leaves.Add(-c.slack(node)), leaves.Add(c.slack(node)), func(e *event) bool {
		return e.Kind == events.State && e.Instance == c.instance && e.State == events.Fault
	})) > 0
}

// leftOut: the agent stopped keepalived, or removed the VIP from its configuration.
func (c *analysis) leftOut(a, b *span, leaves time.Time) *Cause {
	why := c.eventsIn(a.node, leaves.Add(-publish), leaves.Add(publish), func(e *event) bool { return e.Kind == events.LeftOut && len(e.Reasons) > 0 })
	done := c.eventsIn(a.node, leaves.Add(-c.slack(a.node)), leaves.Add(publish), c.matching(events.KeepalivedStopped, events.KeepalivedReload))
	if len(why) == 0 || len(done) == 0 {
		return nil
	}
	c.addEvidence(why...)
	c.addEvidence(done...)
	sure := Likely // the reason may be another VIP's
	if done[len(done)-1].Kind == events.KeepalivedStopped || strings.HasPrefix(why[0].Reasons[0], c.instance+": ") {
		sure = Certain
	}
	out := &Cause{Code: LeftOut, Sure: sure, Node: a.node, Text: a.node + " leaves the VIP out: " + why[0].Reasons[0]}
	if reason, known := vrrp.ParseLeftOut(why[0].Reasons[0]); known {
		out.Next = reason.Next()
	}
	return out
}

// keepalivedFault: keepalived on the holder cannot hold the VIP any more.
func (c *analysis) keepalivedFault(a, b *span, leaves time.Time) *Cause {
	if !c.faulty(a.node, leaves) {
		return nil
	}
	if found := c.failed(a.node, leaves); found != nil {
		return found
	}
	return &Cause{Code: CheckFailed, Sure: Likely, Node: a.node, Text: "keepalived on " + a.node + " is in state FAULT, and no check that failed is recorded"}
}

// unheldBefore returns the cause where no node with a record held the VIP.
func (c *analysis) unheldBefore() Cause {
	b := c.taking("")
	if b == nil {
		return Cause{Code: NotKnown, Sure: Unknown, Text: "the records of the nodes do not show the cause"}.complete()
	}
	why := c.eventsIn(b.node, b.from.Add(-c.slack(b.node)), b.from, c.matching(events.SilentHolder, events.HolderStops, events.State))
	c.addEvidence(why...)
	stops := slices.ContainsFunc(why, func(e *event) bool { return e.Kind == events.HolderStops })
	if h := c.knownHolder(b); h != nil {
		c.addEvidence(h)
		who := c.hostText(h.Peer, h.Name)
		text := who + " held the VIP, and its advertisements stopped; there is no record of it"
		if stops {
			text = "keepalived on " + who + " announced its stop; there is no record of it"
		}
		return Cause{Code: NoRecord, Sure: Unknown, Node: h.Name, Text: text}.complete()
	}
	if c.heldBefore(c.spans, c.first) {
		return Cause{Code: FirstHolder, Sure: Likely, Node: b.node, Text: "no node held the VIP; " + b.node + " was the first that could again"}.complete()
	}
	return Cause{Code: FirstHolder, Sure: Likely, Node: b.node, Text: b.node + " is the first holder in these records"}.complete()
}

// knownHolder returns a node's record of the previous holder, where that has none itself.
func (c *analysis) knownHolder(b *span) *event {
	list := c.eventsIn(b.node, time.Time{}, b.from, c.matching(events.Holder, events.AgentStarted))
	if len(list) == 0 || list[len(list)-1].Kind != events.Holder || !c.unread(list[len(list)-1].Peer, c.first) {
		return nil
	}
	return list[len(list)-1]
}

func (c *analysis) hostText(a netip.Addr, name string) string {
	if name == "" {
		name = c.at[a]
	}
	if name != "" {
		return name
	}
	return a.String()
}

// evidence returns the shown events, sorted by time.
func (c *analysis) evidence() []Evidence {
	out := []Evidence{}
	for _, e := range c.shown {
		out = append(out, Evidence{At: e.when.UTC(), Node: e.Node, Kind: e.Kind, Text: describe(&e.Event)})
	}
	slices.SortStableFunc(out, func(a, b Evidence) int { return a.At.Compare(b.At) })
	return slices.Compact(out)
}
