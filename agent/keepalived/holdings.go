package keepalived

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/vipgen/vipgen/internal/events"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// holdings holds the addresses of this node and the history of each VIP on it since the
// job began. The sums over all nodes show how often a VIP moved, and how long no node
// held it.
type holdings struct {
	mu        sync.Mutex
	addresses []netip.Addr // nil before the first observe
	since     map[netip.Addr]time.Time
	vips      map[netip.Addr]*holding
}

// holding counts one VIP on this node.
type holding struct {
	taken, lost int
	// held is the total of earlier holds; since is the start of the current one, the zero
	// value for none.
	held  time.Duration
	since time.Time
}

// observe replaces the addresses of the node and counts the cluster's VIPs among them. It
// returns the previous addresses and the VIPs acquired since.
func (h *holdings) observe(now time.Time, vips, addresses []netip.Addr) (before, acquired []netip.Addr) {
	h.mu.Lock()
	defer h.mu.Unlock()
	since := make(map[netip.Addr]time.Time, len(addresses))
	for _, a := range addresses {
		if since[a] = now; !h.since[a].IsZero() {
			since[a] = h.since[a]
		}
	}
	before, h.addresses, h.since = h.addresses, addresses, since
	h.count(now, vips)
	return before, slices.DeleteFunc(slices.Clone(vips), func(vip netip.Addr) bool {
		return !slices.Contains(addresses, vip) || slices.Contains(before, vip)
	})
}

func (h *holdings) count(now time.Time, vips []netip.Addr) {
	counted := make(map[netip.Addr]*holding, len(vips))
	for _, vip := range vips {
		v := h.vips[vip]
		if v == nil {
			v = &holding{}
		}
		counted[vip] = v
		switch here := slices.Contains(h.addresses, vip); {
		case here && v.since.IsZero():
			v.since = now
			v.taken++
		case !here && !v.since.IsZero():
			v.held += now.Sub(v.since)
			v.since = time.Time{}
			v.lost++
		}
	}
	h.vips = counted
}

// nodeAddresses returns the addresses of the node; nil before they are known.
func (h *holdings) nodeAddresses() []netip.Addr {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.addresses
}

// heldSince reports whether an address is on this node, and since when.
func (h *holdings) heldSince(a netip.Addr) (since time.Time, held bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	since, held = h.since[a]
	return since, held
}

// counts returns how often the node took and lost a VIP, and for how long it has held it.
func (h *holdings) counts(vip netip.Addr, now time.Time) (taken, lost int, held time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	v := h.vips[vip]
	switch {
	case v == nil:
		return 0, 0, 0
	case v.since.IsZero():
		return v.taken, v.lost, v.held
	}
	return v.taken, v.lost, v.held + now.Sub(v.since)
}

// moved records VIPs of instances that the node acquired or lost.
func (r *record) moved(instances []keepalived.Instance, before, now []netip.Addr) {
	for _, i := range instances {
		vip := i.VIP.Addr()
		switch is, was := slices.Contains(now, vip), slices.Contains(before, vip); {
		case is && !was:
			r.ring.Record(events.Event{Kind: events.Held, Instance: i.Name, VIP: vip})
		case was && !is:
			r.ring.Record(events.Event{Kind: events.Lost, Instance: i.Name, VIP: vip})
		}
	}
}
