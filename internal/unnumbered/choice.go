package unnumbered

import (
	"cmp"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	// tryFor is how long a router without an established session is kept while others advertise
	// themselves: two attempts of GoBGP.
	tryFor = 5 * time.Second
	// most bounds the routers of an interface, of which an honest link has one.
	most = 8
)

// choice chooses one of the routers that advertise themselves at an interface.
type choice struct {
	mu    sync.Mutex
	known []router
	now   netip.Addr
	since time.Time // when now was chosen, or last had a session
	up    bool      // the session is established
}

type router struct {
	address         netip.Addr
	received, tried time.Time
}

// record stores an advertisement, and reports whether the router is a new one. Instead of too many, the
// one that has been silent for longest is forgotten.
func (c *choice) record(a netip.Addr, at time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.find(a); r != nil {
		r.received = at
		return false
	}
	slices.SortFunc(c.known, func(x, y router) int { return y.received.Compare(x.received) })
	c.known = append(c.known[:min(len(c.known), most-1)], router{address: a, received: at})
	return true
}

// choose returns the chosen router before and now. A router whose session is established stays, whatever
// others advertise. Otherwise all are tried in turn, first those that never were.
func (c *choice) choose(at time.Time, established bool) (before, now netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, c.up = c.now, established
	if r := c.find(c.now); established && r != nil {
		r.received = at
	}
	switch {
	case established:
		c.since = at
	case len(c.known) > 0 && at.Sub(c.since) >= tryFor:
		slices.SortFunc(c.known, func(x, y router) int { return cmp.Or(x.tried.Compare(y.tried), y.received.Compare(x.received)) })
		c.now, c.since, c.known[0].tried = c.known[0].address, at, at
	}
	return before, c.now
}

// find returns a router; nil if it is not known. The caller holds mu.
func (c *choice) find(a netip.Addr) *router {
	if i := slices.IndexFunc(c.known, func(r router) bool { return r.address == a }); i >= 0 {
		return &c.known[i]
	}
	return nil
}

// waits reports whether no session is established.
func (c *choice) waits() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.up
}
