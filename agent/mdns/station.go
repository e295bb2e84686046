package mdns

import (
	"context"
	"net/netip"
	"time"
)

// lookInterval is how often to look for the addresses without an event.
const lookInterval = 10 * time.Second

// station is the node at the place of its addresses, and what happens there.
type station struct {
	attachment
	// addresses are the node's; each value replaces the one before.
	addresses <-chan []netip.Addr
}

// actor is who acts at a station. All is called by one goroutine.
type actor interface {
	// moved says that the place is not any more what it was before, and with an
	// error what is in the way.
	moved(before place, err error)
	// receive takes a message of another, or the node's own that came back.
	receive(packet)
	// act does what is due.
	act()
	// settle is called after each of these. It says when to act.
	settle() time.Time
}

// run lets the actor act until ctx ends. The station is still there then.
func (s *station) run(ctx context.Context, a actor) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	ticks := time.NewTicker(lookInterval)
	defer ticks.Stop()
	var places <-chan struct{}
	for {
		if places == nil {
			// Where it fails, the ticks are left, and try again.
			places, _ = watchPlaces(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case wanted, ok := <-s.addresses:
			if !ok {
				s.addresses = nil // the last ones stand
				continue
			}
			s.wanted = wanted
			s.look(a)
		case _, ok := <-places:
			if !ok {
				places = nil
			}
			s.look(a)
		case <-ticks.C:
			s.look(a)
		case in := <-s.incoming():
			a.receive(in)
		case <-timer.C:
			a.act()
		}
		timer.Reset(time.Until(a.settle()))
	}
}

// look follows the node's addresses to where they are.
func (s *station) look(a actor) {
	before := s.place
	if changed, err := s.update(); changed {
		a.moved(before, err)
	}
}
