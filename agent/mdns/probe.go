package mdns

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/vipgen/vipgen/agent/state"
)

// conflictError reports that another host on the link has the host's name.
type conflictError state.Conflict

func (e *conflictError) Error() string {
	return fmt.Sprintf("the name %s is taken on this link: %v publishes %q", e.Name, e.From, e.Theirs)
}

// probe returns the query for other owners of the records' names (RFC 6762 section 8.1).
// It asks for multicast responses: where several responders share the port, a unicast one
// may reach another.
func (r records) probe() *dns.Msg {
	msg := new(dns.Msg)
	for _, name := range r.names() {
		msg.Question = append(msg.Question, dns.Question{Name: name, Qtype: dns.TypeANY, Qclass: dns.ClassINET})
	}
	msg.Ns = r.unique()
	return msg
}

// conflict returns a conflicting record in a response. While probing any record of the
// names conflicts; later, one of a type that the host has. Former records of the host do
// not: its own packets come back to it.
func (r records) conflict(p packet, former records, probing bool) *conflictError {
	for _, theirs := range slices.Concat(p.msg.Answer, p.msg.Extra) {
		header := theirs.Header()
		named := r.unique().named(header.Name)
		if len(named) == 0 || header.Ttl == 0 || header.Rrtype == dns.TypeNSEC || r.has(theirs) || former.has(theirs) {
			continue
		}
		typed := slices.ContainsFunc(named, func(rr dns.RR) bool { return rr.Header().Rrtype == header.Rrtype })
		if probing || typed {
			return conflictWith(theirs, p.from.Addr())
		}
	}
	return nil
}

func conflictWith(theirs dns.RR, from netip.Addr) *conflictError {
	plain := dns.Copy(theirs)
	plain.Header().Class &^= flush
	return &conflictError{
		Name:   strings.TrimSuffix(theirs.Header().Name, "."),
		Theirs: strings.ReplaceAll(plain.String(), "\t", " "),
		From:   from,
	}
}

// loses reports whether another host's simultaneous probe wins: its records sort later
// (RFC 6762 section 8.2).
func (r records) loses(probe *dns.Msg, former records) bool {
	for _, name := range r.names() {
		theirs := records(probe.Ns).named(name)
		if len(theirs) == 0 || len(theirs.without(former)) == 0 {
			continue
		}
		if slices.CompareFunc(raw(r.unique().named(name)), raw(theirs), compareRaw) < 0 {
			return true
		}
	}
	return false
}

// rawRecord is a record in the form compared.
type rawRecord struct {
	class, kind uint16
	data        []byte // uncompressed
}

// raw returns the records in the order of comparison.
func raw(rrs records) []rawRecord {
	var out []rawRecord
	buf := make([]byte, maxMessage)
	for _, rr := range rrs {
		start, err := dns.PackDomainName(rr.Header().Name, buf, 0, nil, false)
		if err != nil {
			continue
		}
		end, err := dns.PackRR(rr, buf, 0, nil, false)
		if err != nil {
			continue
		}
		// After the name come type, class, TTL and length (RFC 1035 section 4.1.3).
		fixed := buf[start : start+10]
		out = append(out, rawRecord{
			class: binary.BigEndian.Uint16(fixed[2:]) &^ flush,
			kind:  binary.BigEndian.Uint16(fixed),
			data:  slices.Clone(buf[start+10 : end]),
		})
	}
	slices.SortFunc(out, compareRaw)
	return out
}

func compareRaw(a, b rawRecord) int {
	return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.kind, b.kind), slices.Compare(a.data, b.data))
}
