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
	heard := c.in(a.node, leaves.Add(-lag), leaves.Add(time.Millisecond), c.of(events.HigherHeard))
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
	since := leaves.Add(-c.downTime(a.node, c.instance) - 5*time.Second)
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
	rose := c.in(sender, since, leaves.Add(lag), func(e *event) bool {
		return e.Kind == events.Effective && e.Instance == c.instance && e.Priority > e.Own
	})
	if len(rose) == 0 {
		return nil
	}
	c.show(h)
	c.show(rose...)
	well := c.in(sender, since.Add(-publish), leaves.Add(lag), func(e *event) bool { return e.Kind == events.Check && e.OK })
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
	failed := c.in(node, fell.Add(-3*time.Second), fell.Add(lag), func(e *event) bool { return e.Kind == events.Check && !e.OK && counts(e.Name, terms) })
	if len(failed) == 0 {
		return nil
	}
	// What HAProxy's end takes away comes before its own check fails.
	after := c.in(node, fell, fell.Add(3*time.Second), func(e *event) bool {
		return e.Kind == events.Check && !e.OK && e.Name == "haproxy" && counts(e.Name, terms)
	})
	failed = append(failed, after...)
	c.show(failed...)
	code, sure := CheckFailed, Certain
	for _, known := range checkCodes {
		if slices.ContainsFunc(failed, func(e *event) bool { return known.is(e.Name) }) {
			code = known.code
			break
		}
	}
	return &Cause{Code: code, Sure: sure, Node: node, Text: "on " + node + " " + checks(failed) + " fails: " + failed[len(failed)-1].Why}
}

// termsOf are those of the instance's priority on a node; none where they are not known.
func (c *consult) termsOf(node string, t time.Time) []events.Term {
	list := c.in(node, time.Time{}, t.Add(publish), c.of(events.Priority))
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1].Terms
}

// counts says whether a check counts for a priority of those terms (docs/agent/core.md).
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

// silent: the node that took the VIP heard no advertisement of the holder, which ran.
func (c *consult) silent(a, b *span, leaves time.Time) *Cause {
	if b == nil || len(c.in(b.node, b.from.Add(-lag), b.from, c.of(events.SilentHolder))) == 0 {
		return nil
	}
	down := c.downTime(b.node, c.instance)
	both := c.both(a, b)
	for _, node := range []string{a.node, b.node} {
		late := c.lateness(node, b.from, down)
		if late == nil || both > 0 && b.from.Add(both).After(late.when.Add(max(down, time.Second))) {
			continue // they held it for longer than that explains
		}
		c.show(late)
		sure := Likely
		if late.For.Duration() >= down*4/5 && node == a.node && late.Name == "keepalived" { // the agent is late sooner
			sure = Certain
		}
		return &Cause{Code: NodeLate, Sure: sure, Node: node, Text: node + " stood still, or had no time on its cores: " + describe(&late.Event)}
	}
	if both == 0 {
		return nil
	}
	again := c.in(a.node, b.from, b.from.Add(both+lag), c.of(events.HigherHeard, events.LowerHeard))
	c.show(again...)
	for _, name := range c.names {
		found := c.in(name, b.from, b.from.Add(both+lag), func(e *event) bool {
			return e.Instance == c.instance && c.at[e.Peer] == a.node && (e.Kind == events.HigherHeard || e.Kind == events.LowerHeard)
		})
		again = append(again, found...)
		c.show(found...)
	}
	sure := Likely // keepalived on the holder may have hung
	if both >= max(2*down, time.Second) && len(again) > 0 {
		sure = Certain
	}
	return &Cause{Code: CutOff, Sure: sure, Node: a.node, Text: a.node + " and " + b.node + " both ran, and " + b.node + " heard no advertisement of " + a.node + ": the network between them, or a filter on the way"}
}

// both is for how long the holder and others held the VIP from the time on that the first
// of them took it.
func (c *consult) both(a, b *span) (most time.Duration) {
	until := later(c.last, nextBegin(c.spans, c.last))
	if a.ends() {
		until = earlier(until, a.to)
	}
	for i := range c.spans {
		s := &c.spans[i]
		if s.node == a.node || s.from.Before(b.from) || s.from.After(until) {
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

// lateness is an event that says that a node stood still while advertisements were missing
// until a moment; nil for none.
func (c *consult) lateness(node string, missing time.Time, down time.Duration) (worst *event) {
	for _, e := range c.in(node, missing.Add(-down-lag), missing.Add(time.Hour), c.of(events.Late, events.Throttled)) {
		began := e.when.Add(-e.For.Duration())
		if began.After(missing.Add(lag)) || e.For.Duration() < down/2 {
			continue
		}
		if worst == nil || e.For > worst.For {
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
		heard = append(heard, c.in(node, c.first.Add(-publish), c.last.Add(lag), c.of(events.HigherHeard, events.LowerHeard))...)
	}
	if len(heard) == 0 {
		return nil
	}
	c.show(heard...)
	return &Cause{Code: HeardAgain, Sure: Certain, Text: strings.Join(c.move.From, " and ") + " both held the VIP, and hear each other again"}
}
