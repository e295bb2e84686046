package mdns

import (
	"strings"

	"github.com/miekg/dns"
)

// legacyTTL bounds what resolvers that know nothing of Multicast DNS keep
// (RFC 6762 section 6.7).
const legacyTTL = 10

// reply is what a query gets.
type reply struct {
	answers records
	extra   records
	// shared is whether others may answer as well, and so the reply has to wait
	// (RFC 6762 section 6).
	shared bool
	// unicast is whether every question with an answer asked for that.
	unicast bool
	// probe is whether somebody wants to have one of the names.
	probe bool
}

func (r records) answer(query *dns.Msg) reply {
	out := reply{unicast: true}
	// Nobody has that many questions for one host.
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

// lookup returns the records that a question asks for. For a name of the host
// and a type that it has not, that is a record which says so (RFC 6762
// section 6.1).
func (r records) lookup(q dns.Question) records {
	if class := q.Qclass &^ flush; class != dns.ClassINET && class != dns.ClassANY {
		return nil
	}
	named := r.named(q.Name)
	var found records
	for _, rr := range named {
		if q.Qtype == dns.TypeANY || rr.Header().Rrtype == q.Qtype {
			found = append(found, rr)
		}
	}
	if unique := named.unique(); len(found) == 0 && len(unique) > 0 {
		found = records{unique.negative()}
	}
	return found
}

// negative returns the record that lists the types which the name of the
// records has.
func (r records) negative() dns.RR {
	header := *r[0].Header()
	header.Rrtype = dns.TypeNSEC
	out := &dns.NSEC{Hdr: header, NextDomain: header.Name}
	for _, kind := range []uint16{dns.TypeA, dns.TypeTXT, dns.TypeAAAA, dns.TypeSRV} { // as the bitmap has them
		for _, rr := range r {
			if rr.Header().Rrtype == kind {
				out.TypeBitMap = append(out.TypeBitMap, kind)
				break
			}
		}
	}
	return out
}

// additional returns what whoever gets the record will ask for next (RFC 6763
// section 12).
func (r records) additional(rr dns.RR) records {
	switch rr := rr.(type) {
	case *dns.PTR:
		instance := r.named(rr.Ptr).unique()
		var out records
		for _, rr := range instance {
			out = append(append(out, rr), r.additional(rr)...)
		}
		return out
	case *dns.SRV:
		return r.named(rr.Target)
	case *dns.A, *dns.AAAA:
		return r.named(rr.Header().Name)
	}
	return nil
}

// known reports whether the one who asks knows the record for long enough
// (RFC 6762 section 7.1).
func known(answers []dns.RR, rr dns.RR) bool {
	for _, answer := range answers {
		if same(answer, rr) && answer.Header().Ttl >= rr.Header().Ttl/2 {
			return true
		}
	}
	return false
}

// response returns a multicast response of records, and more that may help.
func response(answers, extra records) *dns.Msg {
	msg := &dns.Msg{MsgHdr: dns.MsgHdr{Response: true, Authoritative: true}}
	msg.Answer, msg.Extra = flushing(answers), flushing(extra)
	return msg
}

// flushing returns copies with the cache-flush bit, where the record is one
// that only this host has.
func flushing(rrs records) []dns.RR {
	var out []dns.RR
	for _, rr := range rrs {
		rr = dns.Copy(rr)
		if rr.Header().Rrtype != dns.TypePTR {
			rr.Header().Class |= flush
		}
		out = append(out, rr)
	}
	return out
}

// goodbye returns the response after which caches forget the records (RFC 6762
// section 10.1).
func goodbye(rrs records) *dns.Msg {
	msg := response(rrs, nil)
	for _, rr := range msg.Answer {
		rr.Header().Ttl = 0
	}
	return msg
}

// legacy returns the response to a query that does not come from the port of
// Multicast DNS: one as a plain resolver expects it (RFC 6762 section 6.7).
func legacy(query *dns.Msg, r reply) *dns.Msg {
	msg := new(dns.Msg).SetReply(query)
	msg.Authoritative = true
	short := func(rrs records) (out []dns.RR) {
		for _, rr := range rrs {
			rr = dns.Copy(rr)
			rr.Header().Ttl = min(rr.Header().Ttl, legacyTTL)
			out = append(out, rr)
		}
		return out
	}
	msg.Answer, msg.Extra = short(r.answers), short(r.extra)
	return msg
}

// names are those of the unique records, each once.
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
