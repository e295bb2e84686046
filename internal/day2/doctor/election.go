package doctor

import (
	"slices"
	"strings"
	"time"

	"github.com/vipgen/vipgen/internal/events"
	"github.com/vipgen/vipgen/internal/lists"
)

// priority: another node had a higher priority than the holder, whose own fell, or its own
// rose.
func (c *analysis) priority(a, b *span, leaves time.Time) *Cause {
	received := c.eventsIn(a.node, leaves.Add(-c.slack(a.node)), leaves.Add(time.Millisecond), c.matching(events.HigherReceived))
	if len(received) == 0 {
		return nil
	}
	h := received[len(received)-1]
	sender := c.at[h.Peer]
	if sender == "" && !c.peer(a.node, h) {
		c.addEvidence(h)
		return &Cause{Code: AnotherHost, Sure: Certain, Text: h.Peer.String() + ", which is not a peer of " + a.node + ", sends advertisements of a higher priority"}
	}
	if h.Priority <= h.Own {
		return nil // both held it: the reason is earlier
	}
	since := leaves.Add(-c.downTime(a.node) - 5*time.Second)
	fell := c.eventsIn(a.node, since, leaves, func(e *event) bool {
		return e.Kind == events.Effective && e.Instance == c.instance && e.Priority < e.Own
	})
	if len(fell) > 0 {
		c.addEvidence(h)
		c.addEvidence(fell...)
		if found := c.failed(a.node, fell[len(fell)-1].when); found != nil {
			return found
		}
		return &Cause{Code: CheckFailed, Sure: Likely, Node: a.node, Text: "the priority of " + a.node + " fell, and no check that failed is recorded"}
	}
	if sender == "" {
		c.addEvidence(h)
		return &Cause{Code: BetterNode, Sure: Likely, Text: h.Peer.String() + " has a higher priority than " + a.node + "; its record was not read"}
	}
	rose := c.eventsIn(sender, since, leaves.Add(c.slack(sender)), func(e *event) bool {
		return e.Kind == events.Effective && e.Instance == c.instance && e.Priority > e.Own
	})
	if len(rose) == 0 {
		return nil
	}
	c.addEvidence(h)
	c.addEvidence(rose...)
	well := c.eventsIn(sender, since.Add(-publish), leaves.Add(c.slack(sender)), func(e *event) bool { return e.Kind == events.Check && e.OK })
	c.addEvidence(well...)
	text := "the priority of " + sender + " became higher than that of " + a.node
	if names := checks(well); names != "" {
		text += ": on " + sender + " " + names + " succeeds"
	}
	return &Cause{Code: BetterNode, Sure: Certain, Node: sender, Text: text}
}

func (c *analysis) peer(node string, h *event) bool {
	known := c.eventsIn(node, time.Time{}, h.when.Add(publish), c.matching(events.Instance))
	if len(known) == 0 {
		return true // its peers are unknown
	}
	multicast := len(known[len(known)-1].Peers) == 0
	return multicast || slices.ContainsFunc(known, func(e *event) bool { return slices.Contains(e.Peers, h.Peer) })
}

// failed returns the cause of checks that failed on a node just before its priority fell, or
// nil.
func (c *analysis) failed(node string, fell time.Time) *Cause {
	terms := c.termsOf(node, fell)
	bad := func(e *event) bool { return e.Kind == events.Check && !e.OK && counts(e.Name, terms) }
	failed := c.eventsIn(node, fell.Add(-3*time.Second), fell.Add(c.slack(node)), bad)
	if len(failed) == 0 {
		return nil
	}
	// The consequences of HAProxy's end are recorded before its own check fails.
	sure := Certain
	after := c.eventsIn(node, fell, fell.Add(stopTime), func(e *event) bool { return bad(e) && e.Name == "haproxy" })
	if len(after) > 0 {
		after = after[:1]
	}
	failed = append(failed, after...)
	c.addEvidence(failed...)
	code := CheckFailed
	for _, known := range checkCodes {
		if slices.ContainsFunc(failed, func(e *event) bool { return known.is(e.Name) }) {
			code = known.code
			break
		}
	}
	switch {
	case code == HAProxyDown && len(after) > 0 && after[0].when.Sub(fell) > soonAfter,
		code == RedirectMissing && !c.recordsUntil(node, fell.Add(stopTime)):
		sure = Likely
	}
	return &Cause{Code: code, Sure: sure, Node: node, Text: "on " + node + " " + checks(failed) + " fails: " + failed[len(failed)-1].Why}
}

const (
	// stopTime bounds the time from the removal of HAProxy's redirect to its end; soonAfter is
	// the usual one.
	stopTime  = 15 * time.Second
	soonAfter = 3 * time.Second
)

func (r *records) recordsUntil(node string, t time.Time) bool {
	list := r.nodes[node]
	return len(list) > 0 && !list[len(list)-1].when.Before(t)
}

func (c *analysis) termsOf(node string, t time.Time) []events.Term {
	list := c.eventsIn(node, time.Time{}, t.Add(publish), c.matching(events.Priority))
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1].Terms
}

// counts reports whether a check counts for a priority with those terms (agent/README.md).
func counts(check string, terms []events.Term) bool {
	has := func(match func(term string) bool) bool {
		return len(terms) == 0 || slices.ContainsFunc(terms, func(t events.Term) bool { return match(t.Name) })
	}
	group, _, router := strings.Cut(check, "-router-")
	if redirect, found := strings.CutSuffix(check, "-redirect"); found {
		group, router = redirect, true
	}
	switch {
	case router:
		return has(func(term string) bool { return strings.HasPrefix(term, group+"-") })
	case check == "machine-config" || check == "dns":
		return has(func(term string) bool { return strings.HasSuffix(term, check) })
	}
	return has(func(term string) bool {
		return strings.HasSuffix(term, "lb-path") || strings.HasSuffix(term, "lb-or-api")
	})
}

// checkCodes maps the names of facts (agent/health) to causes: of several that fail, the first
// causes the others.
var checkCodes = []struct {
	is   func(name string) bool
	code Code
}{
	{func(n string) bool { return n == "haproxy" }, HAProxyDown},
	{func(n string) bool { return n == "api-ready" }, APINotReady},
	{func(n string) bool { return n == "redirect" || strings.HasSuffix(n, "-redirect") }, RedirectMissing},
	{func(n string) bool { return n == "api" }, APINotReady},
	{func(n string) bool { return n == "machine-config" }, MachineConfig},
	{func(n string) bool { return strings.Contains(n, "-router-") }, RouterDown},
	{func(n string) bool { return n == "dns" }, DNSDown},
}

func checks(list []*event) string {
	names := lists.Add([]string(nil), lists.Map(list, func(e *event) string { return e.Name })...)
	if len(names) == 0 {
		return ""
	}
	return "check " + strings.Join(names, ", ")
}

// holderSilent: the node that took the VIP received no advertisement of the holder, which ran,
// or was paused, or did not receive any since it was paused itself.
func (c *analysis) holderSilent(a, b *span, leaves time.Time) *Cause {
	if b == nil || len(c.eventsIn(b.node, b.from.Add(-c.slack(b.node)), b.from, c.matching(events.SilentHolder))) == 0 {
		return nil
	}
	down := c.downTime(b.node)
	both := c.splitBrainTime(a, b)
	if late := c.lateness(a.node, b, down, both, (down+both)*7/10); late != nil {
		c.addEvidence(late)
		sure := Likely
		if late.Name == "keepalived" { // the agent is late sooner
			sure = Certain
		}
		return paused(a.node, late, sure)
	}
	if late := c.lateness(b.node, b, down, both, max(down/2, both*7/10)); late != nil {
		c.addEvidence(late)
		return paused(b.node, late, Likely)
	}
	if both == 0 {
		return nil
	}
	again := c.eventsIn(a.node, b.from, b.from.Add(both+c.slack(a.node)), c.matching(events.HigherReceived, events.LowerReceived))
	for _, name := range c.names {
		again = append(again, c.eventsIn(name, b.from, b.from.Add(both+c.slack(name)), func(e *event) bool {
			return e.Instance == c.instance && c.at[e.Peer] == a.node && (e.Kind == events.HigherReceived || e.Kind == events.LowerReceived)
		})...)
	}
	c.addEvidence(again...)
	sure := Likely
	if both >= max(2*down, time.Second) && len(again) > 0 && c.holderRan(a, b, down, both) {
		sure = Certain
	}
	return &Cause{Code: CutOff, Sure: sure, Node: a.node, Text: a.node + " and " + b.node + " both ran, and " + b.node + " received no advertisement of " + a.node + ": the network between them, or a filter on the way"}
}

func paused(node string, late *event, sure Sure) *Cause {
	return &Cause{Code: NodeLate, Sure: sure, Node: node, Text: node + " was paused, or had no CPU time: " + describe(&late.Event)}
}

// holderRan reports whether the holder ran, by the records, while its advertisements were missing,
// and a node which took the VIP ran when it missed them. A lack of delays recorded by
// keepalived is not enough, as the agent may not have run to record it.
func (c *analysis) holderRan(a, b *span, down, both time.Duration) bool {
	missing := b.from.Add(-down)
	onTime := func(node string, since, from, to time.Time) bool {
		return len(c.eventsIn(node, from, to, func(e *event) bool { return e.OnTime.Duration() >= e.when.Sub(since) })) > 0
	}
	end := b.from.Add(both)
	if !onTime(a.node, missing.Add(-lag), end.Add(-lag), end.Add(witness)) || c.lateness(a.node, b, down, both, (down+both)/4) != nil {
		return false
	}
	return slices.ContainsFunc(c.spans, func(s span) bool {
		return s.node != a.node && !s.from.Before(b.from) && !s.from.After(end) &&
			onTime(s.node, s.from.Add(-down-lag), s.from, s.from.Add(witness)) && c.lateness(s.node, &s, down, 0, down) == nil
	})
}

// witness is how much later an event may show that a node ran all the time.
const witness = time.Minute

// splitBrainTime returns how long the holder and others held the VIP after the first of them
// took it.
func (c *analysis) splitBrainTime(a, b *span) (most time.Duration) {
	until := later(c.last, nextBegin(c.spans, c.last))
	if a.ends() {
		until = earlier(until, a.to)
	}
	for i := range c.spans {
		s := &c.spans[i]
		if s.node == a.node || s.from.Before(b.from) || s.from.After(c.last) {
			continue
		}
		end := until
		if s.ends() {
			end = earlier(until, s.to)
		}
		most = max(most, end.Sub(b.from))
	}
	return most
}

// lateness returns an event about a pause of a node for at least some time, when advertisements
// to b were missing, or nil. keepalived's own record counts most.
func (c *analysis) lateness(node string, b *span, down, both, least time.Duration) (worst *event) {
	missing := b.from.Add(-down)
	for _, e := range c.eventsIn(node, missing.Add(-lag), b.from.Add(both+publish+c.slack(node)), c.matching(events.Late, events.Throttled)) {
		began := e.when.Add(-e.For.Duration() - e.Delay.Duration())
		if e.Kind == events.Throttled {
			began = began.Add(-publish)
		}
		if began.After(b.from.Add(c.slack(b.node))) || e.For.Duration() < least {
			continue
		}
		keepalived := e.Name == "keepalived"
		if worst == nil || keepalived && worst.Name != e.Name || keepalived == (worst.Name == "keepalived") && e.For > worst.For {
			worst = e
		}
	}
	return worst
}

// split: two nodes held the VIP, and one of them yields.
func (c *analysis) split(a, b *span, leaves time.Time) *Cause {
	if len(c.move.From) < 2 {
		return nil
	}
	var received []*event
	for _, node := range c.move.From {
		received = append(received, c.eventsIn(node, c.first.Add(-publish), c.last.Add(c.slack(node)), c.matching(events.HigherReceived, events.LowerReceived))...)
	}
	if len(received) == 0 {
		return nil
	}
	c.addEvidence(received...)
	return &Cause{Code: ReceivedAgain, Sure: Certain, Text: strings.Join(c.move.From, " and ") + " both held the VIP, and receive each other's advertisements again"}
}
