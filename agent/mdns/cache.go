package mdns

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// Host is a machine that publishes the workstation service.
type Host struct {
	// Name is the host of <host>.local.
	Name string `json:"name"`
	// Addresses are all that it publishes but link-local ones, IPv4 first.
	Addresses []netip.Addr `json:"addresses"`
}

const (
	// maxCached bounds what strangers can make a Resolver keep: a thousand
	// hosts with four records each.
	maxCached = 4096
	// A record that is replaced or taken back lives on for a second (RFC 6762
	// sections 10.1 and 10.2).
	lastSecond = time.Second
)

// cached is a record and what is known about its time.
type cached struct {
	rr       dns.RR
	received time.Time
	expires  time.Time
	asked    int // how often it was asked for again
	// delay is added to when that is, so that not everybody asks together.
	delay time.Duration
}

// cache holds the records that lead from the workstation service to addresses.
type cache struct {
	entries map[string][]*cached // by name and type
	size    int
}

func newCache() *cache { return &cache{entries: map[string][]*cached{}} }

func cacheKey(name string, kind uint16) string {
	return strings.ToLower(name) + " " + dns.TypeToString[kind]
}

// learn takes what a response says about instances of the service and their
// hosts. Others' records are left out. It reports whether there are instances
// that were not known before.
func (c *cache) learn(msg *dns.Msg, now time.Time) (news bool) {
	all := slices.Concat(msg.Answer, msg.Extra)
	// In this order, as each leads to the next.
	for _, rr := range all {
		if ptr, ok := rr.(*dns.PTR); ok && strings.EqualFold(ptr.Hdr.Name, service) {
			news = c.take(rr, now) || news
		}
	}
	instances := c.instances(now)
	for _, rr := range all {
		if _, ok := rr.(*dns.SRV); ok && instances[strings.ToLower(rr.Header().Name)] {
			c.take(rr, now)
		}
	}
	targets := c.targets(now)
	for _, rr := range all {
		switch rr.(type) {
		case *dns.A, *dns.AAAA:
			if targets[strings.ToLower(rr.Header().Name)] {
				c.take(rr, now)
			}
		}
	}
	return news
}

// take keeps a record, and reports whether it was not there.
func (c *cache) take(rr dns.RR, now time.Time) bool {
	header := rr.Header()
	key := cacheKey(header.Name, header.Rrtype)
	expires := now.Add(time.Duration(header.Ttl) * time.Second)
	if header.Ttl == 0 {
		expires = now.Add(lastSecond)
	}
	var mine *cached
	for _, entry := range c.entries[key] {
		switch {
		case same(entry.rr, rr):
			mine = entry
		case header.Class&flush != 0 && now.Sub(entry.received) > lastSecond:
			entry.expires = earlier(entry.expires, now.Add(lastSecond))
		}
	}
	if mine != nil {
		mine.rr, mine.received, mine.expires, mine.asked = rr, now, expires, 0
		return false
	}
	if header.Ttl == 0 || c.size >= maxCached {
		return false
	}
	c.entries[key] = append(c.entries[key], &cached{
		rr: rr, received: now, expires: expires,
		delay: rand.N(time.Duration(header.Ttl)*time.Second/50 + 1),
	})
	c.size++
	return true
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// expire drops what is over.
func (c *cache) expire(now time.Time) {
	for key, entries := range c.entries {
		left := slices.DeleteFunc(entries, func(e *cached) bool { return !now.Before(e.expires) })
		c.size -= len(entries) - len(left)
		if len(left) == 0 {
			delete(c.entries, key)
		} else {
			c.entries[key] = left
		}
	}
}

// find returns the records of a name and type that are not over.
func (c *cache) find(name string, kind uint16, now time.Time) (out []dns.RR) {
	for _, entry := range c.entries[cacheKey(name, kind)] {
		if now.Before(entry.expires) {
			out = append(out, entry.rr)
		}
	}
	return out
}

func (c *cache) instances(now time.Time) map[string]bool {
	out := map[string]bool{}
	for _, rr := range c.find(service, dns.TypePTR, now) {
		out[strings.ToLower(rr.(*dns.PTR).Ptr)] = true
	}
	return out
}

func (c *cache) targets(now time.Time) map[string]bool {
	out := map[string]bool{}
	for instance := range c.instances(now) {
		for _, rr := range c.find(instance, dns.TypeSRV, now) {
			out[strings.ToLower(rr.(*dns.SRV).Target)] = true
		}
	}
	return out
}

// hosts returns who is there, by name. A host without an address is left out.
func (c *cache) hosts(now time.Time) []Host {
	var out []Host
	for target := range c.targets(now) {
		host, ok := hostOf(target)
		if addrs := c.addresses(target, now); ok && len(addrs) > 0 {
			out = append(out, Host{host, addrs})
		}
	}
	slices.SortFunc(out, func(a, b Host) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func (c *cache) addresses(target string, now time.Time) []netip.Addr {
	found := addressesOf(slices.Concat(c.find(target, dns.TypeA, now), c.find(target, dns.TypeAAAA, now)))
	return sortAddrs(slices.DeleteFunc(found, func(a netip.Addr) bool { return !a.IsGlobalUnicast() }))
}

// missing returns the questions for what is not known: where an instance is,
// and which addresses a target has that none is known of.
func (c *cache) missing(now time.Time) []dns.Question {
	var out []dns.Question
	for _, instance := range slices.Sorted(maps.Keys(c.instances(now))) {
		if len(c.find(instance, dns.TypeSRV, now)) == 0 {
			out = append(out, question(instance, dns.TypeSRV))
		}
	}
	for _, target := range slices.Sorted(maps.Keys(c.targets(now))) {
		if len(c.addresses(target, now)) == 0 {
			out = append(out, question(target, dns.TypeA), question(target, dns.TypeAAAA))
		}
	}
	return out
}

func question(name string, kind uint16) dns.Question {
	return dns.Question{Name: name, Qtype: kind, Qclass: dns.ClassINET}
}

// refreshes is how often a record is asked for again in the last fifth of its
// time (RFC 6762 section 5.2).
const refreshes = 4

// refreshAt returns when to ask for the record again: at 80, 85, 90 and 95
// percent of its time, and up to 2 percent later. The second result is false where there is nothing more
// to be asked, or its end is near for another reason.
func (e *cached) refreshAt() (time.Time, bool) {
	whole := time.Duration(e.rr.Header().Ttl) * time.Second
	at := e.received.Add(whole*time.Duration(80+5*e.asked)/100 + e.delay)
	return at, e.asked < refreshes && at.Before(e.expires)
}

// due returns the questions for the records to ask for again by now, and counts
// them as asked.
func (c *cache) due(now time.Time) []dns.Question {
	var out []dns.Question
	for _, key := range slices.Sorted(maps.Keys(c.entries)) {
		for _, entry := range c.entries[key] {
			at, ok := entry.refreshAt()
			if !ok || now.Before(at) {
				continue
			}
			entry.asked++
			header := entry.rr.Header()
			if q := question(header.Name, header.Rrtype); !slices.Contains(out, q) {
				out = append(out, q)
			}
		}
	}
	return out
}

// next returns when a record is to be asked for again or is over; at the latest
// the time given.
func (c *cache) next(latest time.Time) time.Time {
	for _, entries := range c.entries {
		for _, entry := range entries {
			latest = earlier(latest, entry.expires)
			if at, ok := entry.refreshAt(); ok {
				latest = earlier(latest, at)
			}
		}
	}
	return latest
}

// knownInstances returns the records that a question for the service need not
// be answered with: more than half of their time is left (RFC 6762 section
// 7.1).
func (c *cache) knownInstances(now time.Time) []dns.RR {
	var out []dns.RR
	for _, entry := range c.entries[cacheKey(service, dns.TypePTR)] {
		left := entry.expires.Sub(now)
		if left*2 <= time.Duration(entry.rr.Header().Ttl)*time.Second {
			continue
		}
		rr := dns.Copy(entry.rr)
		rr.Header().Ttl = uint32(left / time.Second)
		rr.Header().Class &^= flush
		out = append(out, rr)
	}
	return out
}
