package mdns

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/vipgen/vipgen/agent/state"
)

func (c *cache) instances(now time.Time) map[string]bool {
	out := map[string]bool{}
	for _, rr := range c.find(service, dns.TypePTR, now) {
		out[strings.ToLower(rr.(*dns.PTR).Ptr)] = true
	}
	return out
}

func (c *cache) liveTargets(now time.Time) map[string]bool {
	out := map[string]bool{}
	for instance := range c.instances(now) {
		for _, rr := range c.find(instance, dns.TypeSRV, now) {
			out[strings.ToLower(rr.(*dns.SRV).Target)] = true
		}
	}
	return out
}

// hosts returns the known hosts, by name. Hosts without an address are left out.
func (c *cache) hosts(now time.Time) []state.Host {
	c.changed = false
	var out []state.Host
	for target := range c.liveTargets(now) {
		host, ok := hostOf(target)
		if addrs := c.addresses(target, now); ok && len(addrs) > 0 {
			out = append(out, state.Host{Name: host, Addresses: addrs})
		}
	}
	slices.SortFunc(out, func(a, b state.Host) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func (c *cache) addresses(target string, now time.Time) []netip.Addr {
	found := addressesOf(slices.Concat(c.find(target, dns.TypeA, now), c.find(target, dns.TypeAAAA, now)))
	return sortAddrs(slices.DeleteFunc(found, func(a netip.Addr) bool { return !a.IsGlobalUnicast() }))
}

// missing returns questions for unknown parts: the host of an instance, and the addresses
// of a host.
func (c *cache) missing(now time.Time) []dns.Question {
	var out []dns.Question
	for _, instance := range slices.Sorted(maps.Keys(c.instances(now))) {
		if len(c.find(instance, dns.TypeSRV, now)) == 0 {
			out = append(out, question(instance, dns.TypeSRV))
		}
	}
	for _, target := range slices.Sorted(maps.Keys(c.liveTargets(now))) {
		if len(c.addresses(target, now)) == 0 {
			out = append(out, question(target, dns.TypeA), question(target, dns.TypeAAAA))
		}
	}
	return out
}

func question(name string, kind uint16) dns.Question {
	return dns.Question{Name: name, Qtype: kind, Qclass: dns.ClassINET}
}

// refreshes is the number of refresh queries in the last fifth of a record's TTL (RFC
// 6762 section 5.2).
const refreshes = 4

// refreshAt returns when to refresh the record: at 80, 85, 90 and 95 percent of its TTL,
// and up to 2 percent later. ok is false after the last refresh, or if the record expires
// sooner for another reason.
func (e *cached) refreshAt() (at time.Time, ok bool) {
	at = e.received.Add(e.ttl*time.Duration(80+5*e.asked)/100 + e.delay)
	return at, e.asked < refreshes && at.Before(e.expires)
}

// due returns the questions for records to refresh now, at most that many, and counts
// them.
func (c *cache) due(now time.Time, most int) []dns.Question {
	var out []dns.Question
	asked := map[string]bool{}
	for _, e := range c.all {
		if at, ok := e.refreshAt(); !ok || now.Before(at) {
			continue
		}
		if !asked[e.set] {
			if len(out) == most {
				continue
			}
			asked[e.set] = true
			out = append(out, question(e.rr.Header().Name, e.rr.Header().Rrtype))
		}
		e.asked++
	}
	return out
}

// next returns the time of the next refresh or expiry, latest at most.
func (c *cache) next(latest time.Time) time.Time {
	for _, e := range c.all {
		latest = earlier(latest, e.expires)
		if at, ok := e.refreshAt(); ok {
			latest = earlier(latest, at)
		}
	}
	return latest
}

// knownInstances returns the known answers to a question for the service: those with more
// than half of their TTL left (RFC 6762 section 7.1).
func (c *cache) knownInstances(now time.Time, most int) []dns.RR {
	var out []dns.RR
	for _, e := range c.sets[setOf(service, dns.TypePTR)] {
		left := e.expires.Sub(now)
		if left*2 <= e.ttl || len(out) == most {
			continue
		}
		rr := dns.Copy(e.rr)
		rr.Header().Ttl = uint32(left / time.Second)
		rr.Header().Class &^= flush
		out = append(out, rr)
	}
	return out
}
