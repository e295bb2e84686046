package doctor

import (
	"slices"
	"strings"
	"time"

	"github.com/vipgen/vipgen/internal/events"
)

// priority: another node had a higher priority than the holder, as that one's fell or the
// other one's rose.
func (c *consult) priority(a, b *span, leaves time.Time) *Cause {
	heard := c.in(a.node, leaves.Add(-c.slack(a.node)), leaves.Add(time.Millisecond), c.of(events.HigherHeard))
	if len(heard) == 0 {
		return nil
	}
	h := heard[len(heard)-1]
	sender := c.at[h.Peer]
	if sender == "" && !c.peer(a.node, h) {
		c.show(h)
		return &Cause{Code: AnotherHost, Sure: Certain, Text: h.Peer.String() + ", which is no peer of " + a.node + ", sends advertisements of a higher priority"}
	}
	if h.Priority <= h.Own {
		return nil // both held it: why is to be seen before
	}
	since := leaves.Add(-c.downTime(a.node) - 5*time.Second)
	fell := c.in(a.node, since, leaves, func(e *event) bool {
		return e.Kind == events.Effective && e.Instance == c.instance && e.Priority < e.Own
	})
	if len(fell) > 0 {
		c.show(h)
		c.show(fell...)
		if found := c.failed(a.node, fell[len(fell)-1].when); found != nil {
			return found
		}
		return &Cause{Code: CheckFailed, Sure: Likely, Node: a.node, Text: "the priority of " + a.node + " fell, and no check that failed is recorded"}
	}
	if sender == "" {
		c.show(h)
		return &Cause{Code: BetterNode, Sure: Likely, Text: h.Peer.String() + " has a higher priority than " + a.node + "; its record was not read"}
	}
	rose := c.in(sender, since, leaves.Add(c.slack(sender)), func(e *event) bool {
		return e.Kind == events.Effective && e.Instance == c.instance && e.Priority > e.Own
	})
	if len(rose) == 0 {
		return nil
	}
	c.show(h)
	c.show(rose...)
	well := c.in(sender, since.Add(-publish), leaves.Add(c.slack(sender)), func(e *event) bool { return e.Kind == events.Check && e.OK })
	c.show(well...)
	text := "the priority of " + sender + " became higher than that of " + a.node
	if names := checks(well); names != "" {
		text += ": on " + sender + " " + names + " succeeds"
	}
	return &Cause{Code: BetterNode, Sure: Certain, Node: sender, Text: text}
}

// peer says whether a node knew an address as that of a peer.
func (c *consult) peer(node string, h *event) bool {
	known := c.in(node, time.Time{}, h.when.Add(publish), c.of(events.Instance))
	if len(known) == 0 {
		return true // nothing is known of its peers
	}
	multicast := len(known[len(known)-1].Peers) == 0
	return multicast || slices.ContainsFunc(known, func(e *event) bool { return slices.Contains(e.Peers, h.Peer) })
}

// failed gives the cause that checks are which failed on a node just before its priority
// fell, or nil.
func (c *consult) failed(node string, fell time.Time) *Cause {
	terms := c.termsOf(node, fell)
	bad := func(e *event) bool { return e.Kind == events.Check && !e.OK && counts(e.Name, terms) }
	failed := c.in(node, fell.Add(-3*time.Second), fell.Add(c.slack(node)), bad)
	if len(failed) == 0 {
		return nil
	}
	// What HAProxy's end takes away comes before its own check fails.
	sure := Certain
	after := c.in(node, fell, fell.Add(stopTime), func(e *event) bool { return bad(e) && e.Name == "haproxy" })
	if len(after) > 0 {
		after = after[:1]
	}
	failed = append(failed, after...)
	c.show(failed...)
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
	// stopTime is how long HAProxy may take to end after the redirect to it was removed, and
	// soonAfter how long it takes as a rule.
	stopTime  = 15 * time.Second
	soonAfter = 3 * time.Second
)

// recordsUntil says whether the record of a node goes on to a moment.
func (r *records) recordsUntil(node string, t time.Time) bool {
	list := r.nodes[node]
	return len(list) > 0 && !list[len(list)-1].when.Before(t)
}

// termsOf are those of the instance's priority on a node; none where they are not known.
func (c *consult) termsOf(node string, t time.Time) []events.Term {
	list := c.in(node, time.Time{}, t.Add(publish), c.of(events.Priority))
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1].Terms
}

// counts says whether a check counts for a priority of those terms (agent/README.md).
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
		return has(func(term string) bool { return term == check })
	}
	return has(func(term string) bool {
		return strings.HasSuffix(term, "lb-path") || strings.HasSuffix(term, "lb-or-api")
	})
}

// checkCodes are the causes that checks stand for, by the names of facts (agent/health):
// of several that fail, the first is what the others follow from.
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

// checks names the checks of events.
func checks(list []*event) string {
	var names []string
	for _, e := range list {
		if !slices.Contains(names, e.Name) {
			names = append(names, e.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "check " + strings.Join(names, ", ")
}

// silent: the node that took the VIP heard no advertisement of the holder, which ran, or
// stood still, or did not hear since it stood still itself.
func (c *consult) silent(a, b *span, leaves time.Time) *Cause {
	if b == nil || len(c.in(b.node, b.from.Add(-c.slack(b.node)), b.from, c.of(events.SilentHolder))) == 0 {
		return nil
	}
	down := c.downTime(b.node)
	both := c.both(a, b)
	if late := c.lateness(a.node, b, down, both, (down+both)*7/10); late != nil {
		c.show(late)
		sure := Likely
		if late.Name == "keepalived" { // the agent is late sooner
			sure = Certain
		}
		return stoodStill(a.node, late, sure)
	}
	if late := c.lateness(b.node, b, down, both, max(down/2, both*7/10)); late != nil {
		c.show(late)
		return stoodStill(b.node, late, Likely)
	}
	if both == 0 {
		return nil
	}
	again := c.in(a.node, b.from, b.from.Add(both+c.slack(a.node)), c.of(events.HigherHeard, events.LowerHeard))
	for _, name := range c.names {
		again = append(again, c.in(name, b.from, b.from.Add(both+c.slack(name)), func(e *event) bool {
			return e.Instance == c.instance && c.at[e.Peer] == a.node && (e.Kind == events.HigherHeard || e.Kind == events.LowerHeard)
		})...)
	}
	c.show(again...)
	sure := Likely
	if both >= max(2*down, time.Second) && len(again) > 0 && c.ran(a, b, down, both) {
		sure = Certain
	}
	return &Cause{Code: CutOff, Sure: sure, Node: a.node, Text: a.node + " and " + b.node + " both ran, and " + b.node + " heard no advertisement of " + a.node + ": the network between them, or a filter on the way"}
}

func stoodStill(node string, late *event, sure Sure) *Cause {
	return &Cause{Code: NodeLate, Sure: sure, Node: node, Text: node + " stood still, or had no time on its cores: " + describe(&late.Event)}
}

// ran says whether the records show that the holder ran while its advertisements were
// missing, and that a node which took the VIP ran when it missed them. That keepalived says
// nothing of a delay is not enough, as the agent may not have run to record it.
func (c *consult) ran(a, b *span, down, both time.Duration) bool {
	missing := b.from.Add(-down)
	onTime := func(node string, since, from, to time.Time) bool {
		return len(c.in(node, from, to, func(e *event) bool { return e.OnTime.Duration() >= e.when.Sub(since) })) > 0
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

// witness is how much later an event may show that a node has run all the time.
const witness = time.Minute

// both is for how long the holder and others held the VIP from the time on that the first
// of them took it.
func (c *consult) both(a, b *span) (most time.Duration) {
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

// lateness is an event that says that a node stood still for some time at least, when
// advertisements to b were missing; nil for none. What keepalived says of itself counts most.
func (c *consult) lateness(node string, b *span, down, both, least time.Duration) (worst *event) {
	missing := b.from.Add(-down)
	for _, e := range c.in(node, missing.Add(-lag), b.from.Add(both+publish+c.slack(node)), c.of(events.Late, events.Throttled)) {
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
func (c *consult) split(a, b *span, leaves time.Time) *Cause {
	if len(c.move.From) < 2 {
		return nil
	}
	var heard []*event
	for _, node := range c.move.From {
		heard = append(heard, c.in(node, c.first.Add(-publish), c.last.Add(c.slack(node)), c.of(events.HigherHeard, events.LowerHeard))...)
	}
	if len(heard) == 0 {
		return nil
	}
	c.show(heard...)
	return &Cause{Code: HeardAgain, Sure: Certain, Text: strings.Join(c.move.From, " and ") + " both held the VIP, and hear each other again"}
}
