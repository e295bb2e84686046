// Package routerids finds collisions of virtual router IDs between clusters on one
// layer-2 network, and proposes other IDs for as few groups as possible.
package routerids

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/internal/lists"
)

// Cluster holds the virtual router IDs of a cluster.
type Cluster struct {
	// Name is its name in reports.
	Name string
	// Networks are the networks of its machines, Network the name of their layer-2
	// network, "" if not given.
	Networks []netip.Prefix
	Network  string
	// Reserved are IDs that others on its network use.
	Reserved []int
	Uses     []Use
}

// Use is the ID of a group of VIPs.
type Use struct {
	Group string
	ID    int
	// IPv4 and IPv6 are the families in use; IDs of different families do not collide
	// (RFC 9568 has a virtual router per ID, interface and family).
	IPv4, IPv6 bool
	VIPs       []netip.Addr
	// Chosen reports that the user chose the ID; by default it follows from the cluster's
	// name.
	Chosen bool
	// Field is the field of the VIPConfig that changes the ID, "" if there is none.
	Field string
	// Fixed is why the ID cannot be changed; "" if it can.
	Fixed string
}

// Foreign is an ID of another router, as seen on the wire.
type Foreign struct {
	ID uint8
	// Source is the sender of the adverts, VIPs are its VIPs.
	Source netip.Addr
	VIPs   []netip.Addr
}

// Member is a user of an ID: the indices of cluster and group.
type Member struct{ Cluster, Use int }

// Collision is an ID with several users on one network, or with a foreign router.
type Collision struct {
	ID      int
	Members []Member
	// Why is the shared network, or the other user of the ID.
	Why string
}

// Override is another ID for a group.
type Override struct {
	Member
	From, To int
}

// Unsolved is a collision that no override removes.
type Unsolved struct {
	Member
	Why string
}

// Report is the result of Find.
type Report struct {
	Collisions []Collision
	Overrides  []Override
	Unsolved   []Unsolved
}

type search struct {
	clusters []Cluster
	foreign  []Foreign
	byID     [256][]Member
	// reserved and near are computed per cluster on demand.
	reserved map[int]*[256]string
	near     map[int][]int
}

// Find returns all collisions and a solution. The result depends only on the clusters and
// their order.
func Find(clusters []Cluster, foreign []Foreign) Report {
	s := &search{clusters: clusters, foreign: foreign, reserved: map[int]*[256]string{}, near: map[int][]int{}}
	for c := range clusters {
		for u, use := range clusters[c].Uses {
			if use.ID > 0 && use.ID < 256 {
				s.byID[use.ID] = append(s.byID[use.ID], Member{c, u})
			}
		}
	}
	var r Report
	var change []Member
	for id := 1; id < 256; id++ {
		found := s.inspect(id, &r)
		change = append(change, found...)
	}
	s.assign(change, &r)
	return r
}

func (s *search) use(m Member) *Use { return &s.clusters[m.Cluster].Uses[m.Use] }

// inspect reports the collisions of an ID and returns the members that have to change.
func (s *search) inspect(id int, r *Report) (change []Member) {
	var free []Member
	for _, m := range s.byID[id] {
		who := s.reservedFor(m.Cluster)[id]
		switch {
		case who == "":
			free = append(free, m)
			continue
		case s.use(m).Fixed != "":
			r.Unsolved = append(r.Unsolved, Unsolved{m, who + ", and " + s.use(m).Fixed})
		default:
			change = append(change, m)
		}
		r.Collisions = append(r.Collisions, Collision{ID: id, Members: []Member{m}, Why: who})
	}
	for _, part := range s.components(free) {
		r.Collisions = append(r.Collisions, Collision{ID: id, Members: part, Why: s.why(part)})
		keep := s.keep(part, r)
		change = append(change, lists.Filter(part, func(m Member) bool { return !slices.Contains(keep, m) })...)
	}
	return change
}

// collide reports whether two users of one ID receive each other's adverts.
func (s *search) collide(a, b Member) bool {
	x, y := s.use(a), s.use(b)
	return (x.IPv4 && y.IPv4 || x.IPv6 && y.IPv6) && (a.Cluster == b.Cluster || sharedNetwork(&s.clusters[a.Cluster], &s.clusters[b.Cluster]) != "")
}

// sharedNetwork returns the layer-2 network of two clusters, "" if they share none: names take
// precedence over addresses, which sites reuse.
func sharedNetwork(a, b *Cluster) string {
	if a.Network != "" && b.Network != "" {
		if a.Network == b.Network {
			return "network " + a.Network
		}
		return ""
	}
	for _, p := range a.Networks {
		for _, q := range b.Networks {
			if p.Overlaps(q) {
				return larger(p, q).String()
			}
		}
	}
	return ""
}

func larger(p, q netip.Prefix) netip.Prefix {
	if q.Bits() < p.Bits() {
		return q
	}
	return p
}

// why returns the network of the first two members that collide.
func (s *search) why(part []Member) string {
	for i, a := range part {
		for _, b := range part[i+1:] {
			if s.collide(a, b) {
				return sharedNetwork(&s.clusters[a.Cluster], &s.clusters[b.Cluster])
			}
		}
	}
	return ""
}

// components returns the sets of members linked by collisions, without single members.
func (s *search) components(list []Member) [][]Member {
	var out [][]Member
	seen := make([]bool, len(list))
	for i := range list {
		if seen[i] {
			continue
		}
		seen[i] = true
		part, queue := []Member{list[i]}, []int{i}
		for len(queue) > 0 {
			at := queue[0]
			queue = queue[1:]
			for j := range list {
				if !seen[j] && s.collide(list[at], list[j]) {
					seen[j] = true
					part, queue = append(part, list[j]), append(queue, j)
				}
			}
		}
		if len(part) > 1 {
			slices.SortFunc(part, func(a, b Member) int { return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Use, b.Use)) })
			out = append(out, part)
		}
	}
	return out
}

// reservedFor returns the other user of each ID on the network of a cluster.
func (s *search) reservedFor(cluster int) *[256]string {
	if out := s.reserved[cluster]; out != nil {
		return out
	}
	c, out := &s.clusters[cluster], new([256]string)
	for _, id := range c.Reserved {
		if id > 0 && id < 256 {
			out[id] = "it is reserved"
		}
	}
	for _, f := range s.foreign {
		if !s.isOwn(f) && isOnNetwork(c, f) {
			out[f.ID] = fmt.Sprintf("%s has it on the network", f.Source)
		}
	}
	s.reserved[cluster] = out
	return out
}

func isOnNetwork(c *Cluster, f Foreign) bool {
	return slices.ContainsFunc(c.Networks, func(p netip.Prefix) bool {
		return p.Contains(f.Source) || slices.ContainsFunc(f.VIPs, p.Contains)
	})
}

func (s *search) isOwn(f Foreign) bool {
	return slices.ContainsFunc(s.byID[f.ID], func(m Member) bool {
		return slices.ContainsFunc(f.VIPs, func(a netip.Addr) bool { return slices.Contains(s.use(m).VIPs, a) })
	})
}
