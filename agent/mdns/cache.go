package mdns

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// Any host on the link can send anything at any rate (hard case 41): memory and time per
// packet are bounded.
const (
	// maxCached is enough for a thousand hosts with four records each.
	maxCached = 4096
	// maxSet bounds the records of a name and type, for a host with that many addresses.
	// There are as many instances of the service as hosts.
	maxSet = 16
	// fairShare is about what one host publishes. A full cache first drops records of
	// senders with more.
	fairShare = 8
	// samples is the number of records examined to find such a sender.
	samples = 16
	// maxTTL is the longest TTL of RFC 6762 section 10.
	maxTTL = otherTTL * time.Second
	// lastSecond is how long a replaced or withdrawn record stays (RFC 6762 sections 10.1
	// and 10.2).
	lastSecond = time.Second
)

type cached struct {
	rr       dns.RR
	set, id  string
	from     netip.Addr
	at       int           // in cache.all
	ttl      time.Duration // at most maxTTL
	received time.Time
	expires  time.Time
	asked    int // number of refresh queries
	// delay spreads the refresh queries of the hosts on the link.
	delay time.Duration
}

// cache holds the records from the workstation service to addresses.
type cache struct {
	all     []*cached
	byID    map[string]*cached      // by name, type and data
	sets    map[string][]*cached    // by name and type
	targets map[string]int          // number of services per host name
	senders map[netip.Addr]int      // number of records per sender
	changed bool                    // since the last call of hosts
	random  func(below int) (n int) // rand.IntN except in tests
}

func newCache() *cache {
	return &cache{
		byID: map[string]*cached{}, sets: map[string][]*cached{}, targets: map[string]int{}, senders: map[netip.Addr]int{},
		random: rand.IntN,
	}
}

func setOf(name string, kind uint16) string {
	return strings.ToLower(name) + " " + dns.TypeToString[kind]
}

// idOf returns keys of a record: the same set for the same name and type, the same id for
// the same data too; an empty id for other types.
func idOf(rr dns.RR) (set, id string) {
	set = setOf(rr.Header().Name, rr.Header().Rrtype)
	switch rr := rr.(type) {
	case *dns.PTR:
		return set, set + " " + strings.ToLower(rr.Ptr)
	case *dns.SRV:
		return set, fmt.Sprintf("%s %d %d %d %s", set, rr.Priority, rr.Weight, rr.Port, strings.ToLower(rr.Target))
	case *dns.A:
		return set, set + " " + string(rr.A.To16())
	case *dns.AAAA:
		return set, set + " " + string(rr.AAAA.To16())
	}
	return set, ""
}

// learn caches instances of the service, and the records of their hosts, from a response.
// It reports whether there are new instances.
func (c *cache) learn(msg *dns.Msg, from netip.Addr, now time.Time) (news bool) {
	all := slices.Concat(msg.Answer, msg.Extra)
	// In this order: each type leads to the next.
	for _, rr := range all {
		if ptr, ok := rr.(*dns.PTR); ok && strings.EqualFold(ptr.Hdr.Name, service) {
			news = c.put(rr, from, now) || news
		}
	}
	for _, rr := range all {
		if srv, ok := rr.(*dns.SRV); ok && c.hasInstance(srv.Hdr.Name, now) {
			c.put(rr, from, now)
		}
	}
	for _, rr := range all {
		switch rr.(type) {
		case *dns.A, *dns.AAAA:
			if c.targets[strings.ToLower(rr.Header().Name)] > 0 {
				c.put(rr, from, now)
			}
		}
	}
	return news
}

func (c *cache) hasInstance(name string, now time.Time) bool {
	_, id := idOf(&dns.PTR{Hdr: dns.RR_Header{Name: service, Rrtype: dns.TypePTR}, Ptr: name})
	e := c.byID[id]
	return e != nil && now.Before(e.expires)
}

// put caches a record, and reports whether it is new.
func (c *cache) put(rr dns.RR, from netip.Addr, now time.Time) bool {
	header := rr.Header()
	set, id := idOf(rr)
	ttl := min(time.Duration(header.Ttl)*time.Second, maxTTL)
	expires := now.Add(ttl)
	if ttl == 0 {
		expires = now.Add(lastSecond)
	}
	mine := c.byID[id]
	// Instances are shared: no host withdraws those of others.
	if header.Class&flush != 0 && header.Rrtype != dns.TypePTR {
		for _, e := range c.sets[set] {
			if e != mine && now.Sub(e.received) > lastSecond {
				e.expires, c.changed = earlier(e.expires, now.Add(lastSecond)), true
			}
		}
	}
	if mine != nil {
		c.changed = c.changed || !now.Before(mine.expires)
		remove(c.senders, mine.from)
		c.senders[from]++
		mine.from = from
		mine.rr, mine.ttl, mine.received, mine.expires, mine.asked = rr, ttl, now, expires, 0
		return false
	}
	if ttl == 0 || !c.makeRoom(set, header.Rrtype, from) {
		return false
	}
	c.add(&cached{
		rr: rr, set: set, id: id, from: from, ttl: ttl, received: now, expires: expires, delay: rand.N(ttl/50 + 1),
	})
	return true
}

// makeRoom drops a record for a new one of the set: the oldest of a full set, and in a
// full cache one of the sender with most. It reports whether the new one may be added.
func (c *cache) makeRoom(set string, kind uint16, from netip.Addr) bool {
	if same := c.sets[set]; kind != dns.TypePTR && len(same) >= maxSet {
		c.drop(slices.MinFunc(same, func(a, b *cached) int { return a.received.Compare(b.received) }))
	}
	if len(c.all) < maxCached {
		return true
	}
	var victim *cached
	for range samples {
		if e := c.all[c.random(len(c.all))]; victim == nil || c.excess(e.from) > c.excess(victim.from) {
			victim = e
		}
	}
	if mine := c.excess(from); mine > 0 && mine >= c.excess(victim.from) {
		return false
	}
	c.drop(victim)
	return true
}

// excess returns the number of records from a sender beyond its share.
func (c *cache) excess(from netip.Addr) int { return max(c.senders[from]-fairShare, 0) }

func (c *cache) add(e *cached) {
	e.at = len(c.all)
	c.all = append(c.all, e)
	c.byID[e.id] = e
	c.sets[e.set] = append(c.sets[e.set], e)
	c.senders[e.from]++
	if srv, ok := e.rr.(*dns.SRV); ok {
		c.targets[strings.ToLower(srv.Target)]++
	}
	c.changed = true
}

func (c *cache) drop(e *cached) {
	last := c.all[len(c.all)-1]
	c.all[e.at], last.at = last, e.at
	c.all = c.all[:len(c.all)-1]
	delete(c.byID, e.id)
	remove(c.senders, e.from)
	if srv, ok := e.rr.(*dns.SRV); ok {
		remove(c.targets, strings.ToLower(srv.Target))
	}
	set := c.sets[e.set]
	if i := slices.Index(set, e); len(set) > 1 {
		set[i] = set[len(set)-1]
		set[len(set)-1] = nil
		c.sets[e.set] = set[:len(set)-1]
	} else {
		delete(c.sets, e.set)
	}
	c.changed = true
}

// remove decrements a count, and deletes it at zero.
func remove[K comparable](counts map[K]int, key K) {
	if counts[key]--; counts[key] == 0 {
		delete(counts, key)
	}
}

func earlier(a, b time.Time) time.Time {
	return slices.MinFunc([]time.Time{a, b}, time.Time.Compare)
}

func (c *cache) expire(now time.Time) {
	for i := len(c.all) - 1; i >= 0; i-- {
		if e := c.all[i]; !now.Before(e.expires) {
			c.drop(e)
		}
	}
}

func (c *cache) find(name string, kind uint16, now time.Time) (out []dns.RR) {
	for _, e := range c.sets[setOf(name, kind)] {
		if now.Before(e.expires) {
			out = append(out, e.rr)
		}
	}
	return out
}
