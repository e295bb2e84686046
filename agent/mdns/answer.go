package mdns

import (
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/vipgen/vipgen/internal/lists"
)

// legacyTTL bounds the TTL in responses to plain resolvers (RFC 6762 section 6.7).
const legacyTTL = 10

type reply struct {
	answers records
	extra   records
	// shared reports that others may answer as well, so that the reply is delayed (RFC
	// 6762 section 6).
	shared bool
	// unicast reports that every answered question asked for a unicast response.
	unicast bool
	// probe reports that another host probes for one of the names.
	probe bool
}

func (r records) answer(query *dns.Msg) reply {
	out := reply{unicast: true}
	// No host needs that many questions.
	for _, q := range query.Question[:min(len(query.Question), maxQuestions)] {
		found := r.lookup(q)
		for _, rr := range found {
			if out.answers.has(rr) || known(query.Answer, rr) {
				continue
			}
			out.answers = append(out.answers, rr)
			out.shared = out.shared || rr.Header().Rrtype == dns.TypePTR
			out.unicast = out.unicast && q.Qclass&flush != 0
		}
		if len(found) > 0 && len(query.Ns) > 0 {
			out.probe = true
		}
	}
	for _, rr := range out.answers {
		for _, more := range r.additional(rr) {
			if !out.answers.has(more) && !out.extra.has(more) {
				out.extra = append(out.extra, more)
			}
		}
	}
	return out
}

// lookup returns the records for a question. For a name of the host without that type it
// returns a negative record (RFC 6762 section 6.1).
func (r records) lookup(q dns.Question) records {
	if class := q.Qclass &^ flush; class != dns.ClassINET && class != dns.ClassANY {
		return nil
	}
	named := r.named(q.Name)
	found := lists.Filter(named, func(rr dns.RR) bool { return q.Qtype == dns.TypeANY || rr.Header().Rrtype == q.Qtype })
	if unique := named.unique(); len(found) == 0 && len(unique) > 0 {
		found = records{unique.negative()}
	}
	return found
}

// negative returns the NSEC record that lists the types of the name.
func (r records) negative() dns.RR {
	header := *r[0].Header()
	header.Rrtype = dns.TypeNSEC
	out := &dns.NSEC{Hdr: header, NextDomain: header.Name}
	for _, kind := range []uint16{dns.TypeA, dns.TypeTXT, dns.TypeAAAA, dns.TypeSRV} { // as the bitmap has them
		if slices.ContainsFunc(r, func(rr dns.RR) bool { return rr.Header().Rrtype == kind }) {
			out.TypeBitMap = append(out.TypeBitMap, kind)
		}
	}
	return out
}

// additional returns the records that a receiver of the record asks for next (RFC 6763
// section 12).
func (r records) additional(rr dns.RR) records {
	switch rr := rr.(type) {
	case *dns.PTR:
		return lists.FlatMap(r.named(rr.Ptr).unique(), func(rr dns.RR) []dns.RR { return append(records{rr}, r.additional(rr)...) })
	case *dns.SRV:
		return r.named(rr.Target)
	case *dns.A, *dns.AAAA:
		return r.named(rr.Header().Name)
	}
	return nil
}

// known reports whether the querier has the record for long enough (RFC 6762 section
// 7.1).
func known(answers []dns.RR, rr dns.RR) bool {
	return slices.ContainsFunc(answers, func(a dns.RR) bool { return same(a, rr) && a.Header().Ttl >= rr.Header().Ttl/2 })
}

// response returns a multicast response with additional records.
func response(answers, extra records) *dns.Msg {
	msg := &dns.Msg{MsgHdr: dns.MsgHdr{Response: true, Authoritative: true}}
	msg.Answer, msg.Extra = flushing(answers), flushing(extra)
	return msg
}

// flushing returns copies, with the cache-flush bit on records that only this host has.
func flushing(rrs records) []dns.RR {
	return copies(rrs, func(h *dns.RR_Header) {
		if h.Rrtype != dns.TypePTR {
			h.Class |= flush
		}
	})
}

// copies returns copies with changed headers.
func copies(rrs records, change func(*dns.RR_Header)) []dns.RR {
	return lists.Map(rrs, func(rr dns.RR) dns.RR {
		rr = dns.Copy(rr)
		change(rr.Header())
		return rr
	})
}

// goodbye returns the response that removes the records from caches (RFC 6762 section
// 10.1).
func goodbye(rrs records) *dns.Msg {
	msg := response(rrs, nil)
	for _, rr := range msg.Answer {
		rr.Header().Ttl = 0
	}
	return msg
}

// legacy returns the response to a query from another port than that of Multicast DNS,
// for plain resolvers (RFC 6762 section 6.7).
func legacy(query *dns.Msg, r reply) *dns.Msg {
	msg := new(dns.Msg).SetReply(query)
	msg.Authoritative = true
	short := func(h *dns.RR_Header) { h.Ttl = min(h.Ttl, legacyTTL) }
	msg.Answer, msg.Extra = copies(r.answers, short), copies(r.extra, short)
	return msg
}

// names returns the distinct names of the unique records.
func (r records) names() (out []string) {
	seen := map[string]bool{}
	for _, rr := range r.unique() {
		if name := rr.Header().Name; !seen[strings.ToLower(name)] {
			seen[strings.ToLower(name)] = true
			out = append(out, name)
		}
	}
	return out
}
