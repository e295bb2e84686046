package nodes

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// Snapshot is what is known of the cluster's nodes at one time. It is shared by
// all who got it; nobody may change it.
type Snapshot struct {
	// Peers are all other nodes, sorted by name.
	Peers []v1alpha1.Peer
	// Registered says that this node is in the cluster's list of nodes.
	Registered bool
	// Self is this node as its fellows see it, where it is Registered.
	Self v1alpha1.Peer
	// Updates say how far each node's update is, this one's included, sorted by
	// name.
	Updates []NodeUpdate
	// Bootstrap is the host that bootstraps the cluster, if it is watched.
	Bootstrap Bootstrap
	// Stale says that no API server vouches for this now: it is what was known
	// when one last did, perhaps before the agent started.
	Stale bool
}

// NodeUpdate is how far the update of the node with that name is.
type NodeUpdate struct {
	Name string
	Update
	// VRRP is what the agent there says of its VRRP settings; empty for nothing.
	VRRP string
}

// newSnapshot is for the node called self. The records are sorted by name.
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

// diff says which nodes came, went, have other addresses, or are otherwise not
// as they were.
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

// some names the first of many, for a line of a log.
func some(names []string) string {
	const enough = 5
	if len(names) > enough {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:enough], ","), len(names)-enough)
	}
	return strings.Join(names, ",")
}
