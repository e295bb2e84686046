package mdns

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/miekg/dns"
)

// How soon a record may be multicast again (RFC 6762 section 6), and how long a
// reply waits that others may give as well.
const (
	repeatAfter      = time.Second
	repeatAfterProbe = 250 * time.Millisecond
	sharedLeast      = 20 * time.Millisecond
	sharedSpread     = 100 * time.Millisecond
	// maxDelayed is how many replies wait at a time (hard case 41).
	maxDelayed = 64
)

// receive deals with a message of another, or the host's own that came back.
func (p *publishing) receive(in packet) {
	switch {
	case in.msg.Response:
		if p.phase != conflicting {
			p.watchFor(in)
		}
	case p.phase == probing:
		if len(in.msg.Ns) > 0 && p.records.loses(in.msg, p.former) {
			p.enter(probing, deferral)
		}
	case p.phase == announcing, p.phase == settled:
		p.respond(in)
	}
}

// watchFor looks for a conflict. One that shows after the name was the host's
// is no loss yet: both ask anew, and one of them has to give way (RFC 6762
// section 9).
func (p *publishing) watchFor(in packet) {
	conflict := p.records.conflict(in, p.former, p.phase == probing)
	switch {
	case conflict == nil:
	case p.phase == probing && p.step == 0:
		// Responses before the first probe mean nothing (section 8.1).
	case p.phase == probing:
		if p.contested {
			p.at.send(goodbye(p.records.own().without(records(in.msg.Answer))))
		}
		p.contested = false
		p.wait = min(max(2*p.wait, conflictWait), conflictMost)
		p.enter(conflicting, p.wait)
		p.tell(conflict)
	default:
		p.contested = true
		p.enter(probing, 0)
	}
}

func (p *publishing) respond(in packet) {
	reply := p.records.answer(in.msg)
	now := time.Now()
	switch {
	case len(reply.answers) == 0:
	case in.from.Port() != port:
		p.at.sendTo(in.from, legacy(in.msg, reply))
	case reply.unicast && !reply.probe && p.recent(reply.answers, now):
		p.at.sendTo(in.from, response(reply.answers, reply.extra))
	case reply.shared && !reply.probe && len(p.delayed) >= maxDelayed:
		// Those that wait say as much as one more would.
	case reply.shared && !reply.probe:
		p.delayed = append(p.delayed, delayed{now.Add(sharedLeast + rand.N(sharedSpread)), reply})
	default:
		p.multicast(reply, now)
	}
}

// recent reports whether all were multicast within a quarter of their time, so
// that everybody else has them (RFC 6762 section 5.4).
func (p *publishing) recent(rrs records, now time.Time) bool {
	return !slices.ContainsFunc(rrs, func(rr dns.RR) bool {
		return now.Sub(p.last[key(rr)]) > time.Duration(rr.Header().Ttl)*time.Second/4
	})
}

// multicast sends a reply, but for what was sent just before.
func (p *publishing) multicast(r reply, now time.Time) {
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

// flushDelayed sends the replies that have waited long enough.
func (p *publishing) flushDelayed(now time.Time) {
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

// sent notes when records were multicast.
func (p *publishing) sent(rrs records, now time.Time) {
	for _, rr := range rrs {
		p.last[key(rr)] = now
	}
}

func key(rr dns.RR) string { return rr.String() }
