package nodes

import (
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	// vouchTime is how long the list of nodes counts while servers are asked again: one silent server, such
	// as that of a node that lost power, and half a second. With several that are silent a node that was
	// removed from the cluster would trust its list for seconds (hard case 51).
	vouchTime = dialTimeout + 500*time.Millisecond
	// claimedTime is how long it counts after another host claimed a VIP that this node has. A server that
	// is well answers within milliseconds; an unconfirmed list only has the node watch the link.
	claimedTime = 200 * time.Millisecond
)

// doubt is a request that tells whether the list of nodes is current, and has no answer yet.
type doubt struct {
	late *time.Timer // calls unconfirmed

	mu          sync.Mutex
	settled     bool
	unconfirmed func()
}

// doubt calls unconfirmed after vouchTime, claimedTime after a claim, or as soon as a server does not
// know the node's credentials, whatever it was asked for: the node may have been removed. settle is called
// before the outcome counts.
func (c *client) doubt(unconfirmed func()) (settle func()) {
	d := &doubt{unconfirmed: unconfirmed}
	c.mu.Lock()
	defer c.mu.Unlock()
	after := vouchTime
	if !c.claimed.IsZero() && time.Since(c.claimed) < vouchTime {
		after = claimedTime
	}
	d.late = time.AfterFunc(after, d.raise)
	c.doubts[d] = struct{}{}
	return func() {
		c.mu.Lock()
		delete(c.doubts, d)
		c.mu.Unlock()
		d.late.Stop()
		d.mu.Lock()
		defer d.mu.Unlock()
		d.settled = true
	}
}

func (d *doubt) raise() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.settled {
		d.unconfirmed()
	}
}

// claim shortens the time that the list counts: another host claims a VIP that this node has.
func (c *client) claim() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.claimed) < claimedTime {
		return // it is short already
	}
	c.claimed = time.Now()
	for d := range c.doubts {
		d.late.Reset(claimedTime)
	}
}

// unauthorized raises all doubts: a server does not know the node's credentials.
func (c *client) unauthorized() {
	c.mu.Lock()
	all := slices.Collect(maps.Keys(c.doubts))
	c.mu.Unlock()
	for _, d := range all {
		d.raise()
	}
}
