package keepalived

import (
	"net/netip"
	"slices"
	"time"
)

// tally counts what became of each VIP on this node, since the job began. Together those of
// all nodes say how often a VIP moved, and for how long no node held it.
type tally map[netip.Addr]*holding

// holding is one VIP on this node.
type holding struct {
	taken, lost int
	// held is for how long the node held it before; since is when it took it now, the zero
	// value while it does not hold it.
	held  time.Duration
	since time.Time
}

// look notes which of the cluster's VIPs are among the addresses of the node. Others than
// the cluster's are forgotten.
func (t tally) look(now time.Time, vips, addresses []netip.Addr) {
	for vip := range t {
		if !slices.Contains(vips, vip) {
			delete(t, vip)
		}
	}
	for _, vip := range vips {
		h := t[vip]
		if h == nil {
			h = &holding{}
			t[vip] = h
		}
		switch here := slices.Contains(addresses, vip); {
		case here && h.since.IsZero():
			h.since = now
			h.taken++
		case !here && !h.since.IsZero():
			h.held += now.Sub(h.since)
			h.since = time.Time{}
			h.lost++
		}
	}
}

// total is for how long the node has held the VIP by now.
func (h *holding) total(now time.Time) time.Duration {
	if h.since.IsZero() {
		return h.held
	}
	return h.held + now.Sub(h.since)
}

// tallied is what became of a VIP on this node.
func (s *shared) tallied(vip netip.Addr) (taken, lost int, held time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.tally[vip]
	if h == nil {
		return 0, 0, 0
	}
	return h.taken, h.lost, h.total(time.Now())
}
