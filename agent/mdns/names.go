package mdns

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/vipgen/vipgen/internal/lazy"
)

const (
	domain     = "local."
	service    = "_workstation._tcp." + domain
	enumerated = "_services._dns-sd._udp." + domain // RFC 6763 section 9

	// workstationPort is the discard port (RFC 863): the service announces a machine, not
	// a listener.
	workstationPort = 9

	// TTLs of records with a host's name or address, and of others (RFC 6762 section 10).
	hostTTL  = 120
	otherTTL = 75 * 60
)

// label is one label of a host name (RFC 1123 section 2.1).
var label = lazy.Regexp(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// validateHost returns an error unless host is the lower-case first label of a node's
// name.
func validateHost(host string) error {
	if !label().MatchString(host) {
		return fmt.Errorf("host %q is not one label of lower-case letters, digits and hyphens", host)
	}
	return nil
}

func hostName(host string) string     { return host + "." + domain }
func instanceName(host string) string { return host + "." + service }

// hostOf returns the host in <host>.local.
func hostOf(name string) (host string, ok bool) {
	host, ok = strings.CutSuffix(strings.ToLower(name), "."+domain)
	return host, ok && validateHost(host) == nil
}

type records []dns.RR

func newRecords(host string, addrs []netip.Addr) records {
	header := func(name string, kind uint16, ttl uint32) dns.RR_Header {
		return dns.RR_Header{Name: name, Rrtype: kind, Class: dns.ClassINET, Ttl: ttl}
	}
	var out records
	for _, addr := range addrs {
		if addr.Is4() {
			out = append(out, &dns.A{Hdr: header(hostName(host), dns.TypeA, hostTTL), A: addr.AsSlice()})
		} else {
			out = append(out, &dns.AAAA{Hdr: header(hostName(host), dns.TypeAAAA, hostTTL), AAAA: addr.AsSlice()})
		}
	}
	return append(out,
		&dns.SRV{Hdr: header(instanceName(host), dns.TypeSRV, hostTTL), Port: workstationPort, Target: hostName(host)},
		// A service without facts has one empty string (RFC 6763 section 6.1).
		&dns.TXT{Hdr: header(instanceName(host), dns.TypeTXT, otherTTL), Txt: []string{""}},
		&dns.PTR{Hdr: header(service, dns.TypePTR, otherTTL), Ptr: instanceName(host)},
		&dns.PTR{Hdr: header(enumerated, dns.TypePTR, otherTTL), Ptr: service},
	)
}

// unique returns the records that only this host may have.
func (r records) unique() records {
	return slices.DeleteFunc(slices.Clone(r), func(rr dns.RR) bool { return rr.Header().Rrtype == dns.TypePTR })
}

// own returns the records that end with this host: all but the enumeration of the
// service, which other hosts publish as well.
func (r records) own() records {
	return slices.DeleteFunc(slices.Clone(r), func(rr dns.RR) bool { return rr.Header().Name == enumerated })
}

func (r records) named(name string) records {
	return slices.DeleteFunc(slices.Clone(r), func(rr dns.RR) bool { return !strings.EqualFold(rr.Header().Name, name) })
}

// has reports whether there is an equal record, with any TTL.
func (r records) has(rr dns.RR) bool {
	return slices.ContainsFunc(r, func(mine dns.RR) bool { return same(mine, rr) })
}

func (r records) without(others records) records {
	return slices.DeleteFunc(slices.Clone(r), others.has)
}

// flush is the top bit of a record's class: in a multicast response it makes caches drop
// other records of that name and type (RFC 6762 section 10.2), in a question it requests
// a unicast response (section 5.4).
const flush = 1 << 15

// same reports whether two records have the same name, type, class and data.
func same(a, b dns.RR) bool {
	if a.Header().Class == b.Header().Class {
		return dns.IsDuplicate(a, b)
	}
	if a.Header().Rrtype != b.Header().Rrtype || !strings.EqualFold(a.Header().Name, b.Header().Name) {
		return false
	}
	x, y := dns.Copy(a), dns.Copy(b)
	x.Header().Class &^= flush
	y.Header().Class &^= flush
	return dns.IsDuplicate(x, y)
}

func sortAddrs(addrs []netip.Addr) []netip.Addr {
	out := slices.Clone(addrs)
	slices.SortFunc(out, func(a, b netip.Addr) int {
		return cmp.Or(cmp.Compare(a.BitLen(), b.BitLen()), a.Compare(b))
	})
	return slices.Compact(out)
}
