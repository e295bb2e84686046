package nodes

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
)

// Snapshot is the known state of the cluster's nodes at one time. It is shared between
// subscribers and must not be changed.
type Snapshot struct {
	// Peers are all other nodes, sorted by name.
	Peers []v1alpha1.Peer
	// Registered reports that this node is in the cluster's list of nodes.
	Registered bool
	// Self is this node as its peers see it, if Registered.
	Self v1alpha1.Peer
	// Updates holds the update progress of each node, this one's included, sorted by
	// name.
	Updates []NodeUpdate
	// Bootstrap is the bootstrap host, if watched.
	Bootstrap Bootstrap
	// Stale reports that no API server vouches for the data now: it is the last known
	// state, perhaps from before the agent started.
	Stale bool
}

// NodeUpdate is the update progress of the named node.
type NodeUpdate struct {
	Name string
	Update
	// VRRP is the announcement of the node's agent; empty for none.
	VRRP string
}

// newSnapshot returns the snapshot for the node self. The records are sorted by name.
func newSnapshot(records []*record, self string, spec *v1alpha1.ClusterConfigSpec, stale bool, b Bootstrap) *Snapshot {
	s := &Snapshot{Stale: stale, Bootstrap: b}
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
		s.Updates = append(s.Updates, NodeUpdate{Name: r.Name, Update: r.Update, VRRP: r.VRRP})
	}
	return s
}

func (s *Snapshot) equal(o *Snapshot) bool {
	return s.Stale == o.Stale && s.Registered == o.Registered && samePeer(s.Self, o.Self) && s.Bootstrap == o.Bootstrap &&
		slices.EqualFunc(s.Peers, o.Peers, samePeer) && slices.Equal(s.Updates, o.Updates)
}

func samePeer(a, b v1alpha1.Peer) bool {
	return a.Name == b.Name && a.Role == b.Role && slices.Equal(a.Addresses, b.Addresses) &&
		slices.Equal(a.Elsewhere, b.Elsewhere) && maps.Equal(a.Labels, b.Labels)
}

// all returns all nodes, this one first.
func (s *Snapshot) all() []v1alpha1.Peer {
	if !s.Registered {
		return s.Peers
	}
	return append([]v1alpha1.Peer{s.Self}, s.Peers...)
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
		case !samePeer(was, p):
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
