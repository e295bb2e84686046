package watch

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

// View is a side from which holding a VIP is seen.
type View string

const (
	// Addresses is a node's own: the VIP is on one of its links.
	Addresses View = "addresses"
	// Capture is the network's: the node claims the VIP in adverts, ARP or
	// neighbour advertisements. The adverts of a unicast holder whose peers are
	// all gone never leave it, so that it is seen only while clients ask for it.
	Capture View = "capture"
)

// Span is a time for which a node held a VIP. Times are since Config.Since.
type Span struct {
	View View
	VIP  netip.Addr
	Node string
	// From and To are when the address came and went, or when the first and the
	// last packet were seen that claimed it.
	From, To time.Duration
}

// Timeline is who held which VIP when, from both sides, sorted by VIP, view,
// time and node.
type Timeline []Span

// Overlap is a time for which two nodes held a VIP at once.
type Overlap struct {
	View     View
	VIP      netip.Addr
	Nodes    [2]string // sorted by when they began to hold it
	From, To time.Duration
}

// Length returns for how long both held the VIP.
func (o Overlap) Length() time.Duration { return o.To - o.From }

// In returns the spans of one view.
func (t Timeline) In(view View) Timeline {
	var some Timeline
	for _, s := range t {
		if s.View == view {
			some = append(some, s)
		}
	}
	return some
}

// Overlaps returns the times, no shorter than that, for which two nodes held a
// VIP at once. Moments without a length are none.
func (t Timeline) Overlaps(shortest time.Duration) []Overlap {
	var found []Overlap
	sorted := slices.Clone(t)
	sorted.sort()
	for i, a := range sorted {
		for _, b := range sorted[i+1:] {
			if b.View != a.View || b.VIP != a.VIP || b.From >= a.To {
				break
			}
			o := Overlap{View: a.View, VIP: a.VIP, Nodes: [2]string{a.Node, b.Node}, From: b.From, To: min(a.To, b.To)}
			if a.Node != b.Node && o.Length() > 0 && o.Length() >= shortest {
				found = append(found, o)
			}
		}
	}
	return found
}

// SplitBrain returns the longest of Overlaps, from either side; 0 for none.
func (t Timeline) SplitBrain(shortest time.Duration) time.Duration {
	var longest time.Duration
	for _, o := range t.Overlaps(shortest) {
		longest = max(longest, o.Length())
	}
	return longest
}

// Holders returns the nodes that had a VIP on a link, one after the other, but for those that
// had it for no longer than a time, as one of two that reach for it at the same moment.
func (t Timeline) Holders(vip netip.Addr, shortest time.Duration) (nodes []string) {
	for _, s := range t.In(Addresses) {
		if s.VIP == vip && s.To-s.From > shortest && (len(nodes) == 0 || nodes[len(nodes)-1] != s.Node) {
			nodes = append(nodes, s.Node)
		}
	}
	return nodes
}

func (t Timeline) sort() {
	slices.SortFunc(t, func(a, b Span) int {
		return cmp.Or(a.VIP.Compare(b.VIP), cmp.Compare(a.View, b.View), cmp.Compare(a.From, b.From),
			cmp.Compare(a.Node, b.Node))
	})
}
