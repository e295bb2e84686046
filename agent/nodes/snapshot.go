package nodes

import (
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/agent/nodelist"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
)

// newSnapshot returns the snapshot for the node self. The records are sorted by name.
func newSnapshot(records []*record, self string, spec *v1alpha1.ClusterConfigSpec, stale bool, b nodelist.Bootstrap) *nodelist.Snapshot {
	s := &nodelist.Snapshot{Stale: stale, Bootstrap: b}
	if isVIP(spec, b.Address) {
		s.Bootstrap.Address = netip.Addr{}
	}
	for _, r := range records {
		p := r.peer(spec)
		if r.Name == self {
			s.Registered, s.Self = true, p
		} else {
			s.Peers = append(s.Peers, p)
		}
		s.Updates = append(s.Updates, nodelist.NodeUpdate{Name: r.Name, Update: r.Update, VRRP: r.VRRP})
	}
	return s
}

// diff returns the names of nodes that joined, left, changed addresses (moved) or
// anything else (changed).
func diff(before, after []v1alpha1.Peer) (joined, left, moved, changed []string) {
	old := make(map[string]v1alpha1.Peer, len(before))
	for _, p := range before {
		old[p.Name] = p
	}
	for _, p := range after {
		was, ok := old[p.Name]
		delete(old, p.Name)
		switch {
		case !ok:
			joined = append(joined, p.Name)
		case !slices.Equal(was.Addresses, p.Addresses):
			moved = append(moved, p.Name)
		case !nodelist.SamePeer(was, p):
			changed = append(changed, p.Name)
		}
	}
	for _, p := range before {
		if _, ok := old[p.Name]; ok {
			left = append(left, p.Name)
		}
	}
	return joined, left, moved, changed
}

// summarize joins the first few names for a log line.
func summarize(names []string) string { return lists.Summarize(names, 5, ",") }
