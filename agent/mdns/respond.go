package mdns

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/miekg/dns"
)

// Least intervals between multicasts of a record (RFC 6762 section 6), and the delay of a
// shared reply.
const (
	repeatAfter      = time.Second
	repeatAfterProbe = 250 * time.Millisecond
	sharedLeast      = 20 * time.Millisecond
	sharedSpread     = 100 * time.Millisecond
	// maxDelayed bounds the delayed replies (hard case 41).
	maxDelayed = 64
)

// receive handles a message of another host, or a copy of an own one.
func (p *publisherRun) receive(in packet) {
	switch {
	case in.msg.Response:
		if p.phase != conflicting {
			p.checkConflict(in)
		}
	case p.phase == probing:
		if len(in.msg.Ns) > 0 && p.records.loses(in.msg, p.former) {
			p.enter(probing, deferral)
		}
	case p.phase == announcing, p.phase == settled:
		p.respond(in)
	}
}

// checkConflict handles a conflict in a response. A conflict over an owned name is not
// lost yet: both hosts probe again, and one of them gives way (RFC 6762 section 9).
func (p *publisherRun) checkConflict(in packet) {
	conflict := p.records.conflict(in, p.former, p.phase == probing)
	switch {
	case conflict == nil:
	case p.phase == probing && p.step == 0:
		// Responses before the first probe do not count (section 8.1).
	case p.phase == probing:
		if p.contested {
			p.at.send(goodbye(p.records.own().without(records(in.msg.Answer))))
		}
		p.contested = false
		p.wait = min(max(2*p.wait, conflictWait), conflictMost)
		p.enter(conflicting, p.wait)
		p.notify(conflict)
	default:
		p.contested = true
		p.enter(probing, 0)
	}
}

func (p *publisherRun) respond(in packet) {
	reply := p.records.answer(in.msg)
	now := time.Now()
	switch {
	case len(reply.answers) == 0:
	case in.from.Port() != port:
		p.at.sendTo(in.from, legacy(in.msg, reply))
	case reply.unicast && !reply.probe && p.recent(reply.answers, now):
		p.at.sendTo(in.from, response(reply.answers, reply.extra))
	case reply.shared && !reply.probe && len(p.delayed) >= maxDelayed:
		// The delayed replies answer this one, too.
	case reply.shared && !reply.probe:
		p.delayed = append(p.delayed, delayed{now.Add(sharedLeast + rand.N(sharedSpread)), reply})
	default:
		p.multicast(reply, now)
	}
}

// recent reports whether all records were multicast within a quarter of their TTL, so
// that all other hosts have them (RFC 6762 section 5.4).
func (p *publisherRun) recent(rrs records, now time.Time) bool {
	return !slices.ContainsFunc(rrs, func(rr dns.RR) bool {
		return now.Sub(p.last[key(rr)]) > time.Duration(rr.Header().Ttl)*time.Second/4
	})
}

// multicast sends a reply without records that were sent just before.
func (p *publisherRun) multicast(r reply, now time.Time) {
	again := repeatAfter
	if r.probe {
		again = repeatAfterProbe
	}
	fresh := slices.DeleteFunc(slices.Clone(r.answers), func(rr dns.RR) bool { return now.Sub(p.last[key(rr)]) < again })
	if len(fresh) == 0 {
		return
	}
	p.at.send(response(fresh, r.extra))
	p.sent(fresh, now)
}

// flushDelayed sends the replies whose delay has passed.
func (p *publisherRun) flushDelayed(now time.Time) {
	waiting := p.delayed
	p.delayed = nil
	for _, d := range waiting {
		if now.Before(d.at) {
			p.delayed = append(p.delayed, d)
		} else {
			p.multicast(d.reply, now)
		}
	}
}

func (p *publisherRun) sent(rrs records, now time.Time) {
	for _, rr := range rrs {
		p.last[key(rr)] = now
	}
}

func key(rr dns.RR) string { return rr.String() }
