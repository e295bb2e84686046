package mdns

import (
	"context"
	"net/netip"
	"time"
)

// pollInterval is the interval at which the place is polled without events.
const pollInterval = 10 * time.Second

// station follows the place of the node's addresses, and runs an actor there.
type station struct {
	attachment
	// addresses sends the node's addresses; each value replaces the previous one.
	addresses <-chan []netip.Addr
}

// actor acts at a station. All methods are called by one goroutine.
type actor interface {
	// moved is called after the place changed, or with an error.
	moved(before place, err error)
	// receive is called with a message of another host, or a copy of an own one.
	receive(packet)
	// act performs due actions.
	act()
	// nextAction returns the time for act. It is called after each of these.
	nextAction() time.Time
}

// run runs the actor until ctx ends. The caller detaches the station.
func (s *station) run(ctx context.Context, a actor) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	ticks := time.NewTicker(pollInterval)
	defer ticks.Stop()
	var places <-chan struct{}
	for {
		if places == nil {
			// After an error only the ticks remain, and retry.
			places, _ = watchPlaces(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case wanted, ok := <-s.addresses:
			if !ok {
				s.addresses = nil // the last ones stay
				continue
			}
			s.wanted = wanted
			s.relocate(a)
		case _, ok := <-places:
			if !ok {
				places = nil
			}
			s.relocate(a)
		case <-ticks.C:
			s.relocate(a)
		case in := <-s.incoming():
			a.receive(in)
		case <-timer.C:
			a.act()
		}
		timer.Reset(time.Until(a.nextAction()))
	}
}

// relocate follows the node's addresses.
func (s *station) relocate(a actor) {
	before := s.place
	if changed, err := s.update(); changed {
		a.moved(before, err)
	}
}
