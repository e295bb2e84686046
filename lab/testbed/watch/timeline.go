package watch

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

// View is a source of information about holders.
type View string

const (
	// Addresses is the nodes' view: the VIP is on one of their links.
	Addresses View = "addresses"
	// Capture is the network's view: the node claims the VIP in advertisements, ARP or neighbour
	// advertisements. A unicast holder whose peers are all gone sends no advertisements, so that it
	// is seen only while clients resolve its address.
	Capture View = "capture"
)

// Span is a time in which a node held a VIP. Times are relative to Config.Since.
type Span struct {
	View View
	VIP  netip.Addr
	Node string
	// From and To are the times at which the address was added and removed, or of the first and the
	// last packet that claimed it.
	From, To time.Duration
}

// Timeline has the holders of all VIPs, in both views, sorted by VIP, view, time and node.
type Timeline []Span

// Overlap is a time in which two nodes held a VIP.
type Overlap struct {
	View     View
	VIP      netip.Addr
	Nodes    [2]string // sorted by the start of their spans
	From, To time.Duration
}

// Length returns the duration of the overlap.
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

// Overlaps returns the times of at least the shortest duration in which two nodes held a VIP.
// Overlaps without a duration are left out.
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

// SplitBrain returns the duration of the longest overlap in either view; 0 if there is none.
func (t Timeline) SplitBrain(shortest time.Duration) time.Duration {
	var longest time.Duration
	for _, o := range t.Overlaps(shortest) {
		longest = max(longest, o.Length())
	}
	return longest
}

// Holders returns the nodes that had a VIP on a link, in order, without those that had it for the
// shortest time or less, such as one of two nodes that acquire it at the same moment.
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
