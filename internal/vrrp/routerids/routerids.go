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
	// Name is its name in reports, File its install-config, and VIPConfig the file that
	// overrides go to.
	Name, File, VIPConfig string
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

// member is a user of an ID: the indices of cluster and group.
type member struct{ cluster, use int }

// Collision is an ID with several users on one network, or with a foreign router.
type Collision struct {
	ID    int      `json:"id"`
	Users []string `json:"users"`
	// Why is the shared network, or the other user of the ID.
	Why string `json:"why"`
}

// Override is another ID for a group.
type Override struct {
	Cluster string `json:"cluster"`
	File    string `json:"file"`
	Field   string `json:"field"`
	From    int    `json:"from"`
	To      int    `json:"to"`
}

// Unsolved is a collision that no override removes.
type Unsolved struct {
	User string `json:"user"`
	File string `json:"file"`
	ID   int    `json:"id"`
	Why  string `json:"why"`
}

// Report is the result of Find.
type Report struct {
	Collisions []Collision `json:"collisions"`
	Overrides  []Override  `json:"overrides"`
	Unsolved   []Unsolved  `json:"unsolved"`
}

type search struct {
	clusters []Cluster
	foreign  []Foreign
	byID     [256][]member
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
				s.byID[use.ID] = append(s.byID[use.ID], member{c, u})
			}
		}
	}
	r := Report{[]Collision{}, []Override{}, []Unsolved{}}
	var change []member
	for id := 1; id < 256; id++ {
		found := s.inspect(id, &r)
		change = append(change, found...)
	}
	s.assign(change, &r)
	return r
}

func (s *search) use(m member) *Use { return &s.clusters[m.cluster].Uses[m.use] }

// user names a user of an ID.
func (s *search) user(m member) string {
	return fmt.Sprintf("%s's %s", s.clusters[m.cluster].Name, s.use(m).Group)
}

func (r *Report) unsolved(s *search, m member, why string) {
	r.Unsolved = append(r.Unsolved, Unsolved{s.user(m), s.clusters[m.cluster].File, s.use(m).ID, why})
}

// inspect reports the collisions of an ID and returns the members that have to change.
func (s *search) inspect(id int, r *Report) (change []member) {
	var free []member
	for _, m := range s.byID[id] {
		who := s.reservedFor(m.cluster)[id]
		switch {
		case who == "":
			free = append(free, m)
			continue
		case s.use(m).Fixed != "":
			r.unsolved(s, m, who+", and "+s.use(m).Fixed)
		default:
			change = append(change, m)
		}
		r.Collisions = append(r.Collisions, Collision{id, []string{s.user(m)}, who})
	}
	for _, part := range s.components(free) {
		r.Collisions = append(r.Collisions, Collision{id, lists.Map(part, s.user), s.why(part)})
		keep := s.keep(part, r)
		change = append(change, lists.Filter(part, func(m member) bool { return !slices.Contains(keep, m) })...)
	}
	return change
}

// collide reports whether two users of one ID receive each other's adverts.
func (s *search) collide(a, b member) bool {
	x, y := s.use(a), s.use(b)
	return (x.IPv4 && y.IPv4 || x.IPv6 && y.IPv6) && (a.cluster == b.cluster || sharedNetwork(&s.clusters[a.cluster], &s.clusters[b.cluster]) != "")
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
func (s *search) why(part []member) string {
	for i, a := range part {
		for _, b := range part[i+1:] {
			if s.collide(a, b) {
				return sharedNetwork(&s.clusters[a.cluster], &s.clusters[b.cluster])
			}
		}
	}
	return ""
}

// components returns the sets of members linked by collisions, without single members.
func (s *search) components(list []member) [][]member {
	var out [][]member
	seen := make([]bool, len(list))
	for i := range list {
		if seen[i] {
			continue
		}
		seen[i] = true
		part, queue := []member{list[i]}, []int{i}
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
			slices.SortFunc(part, func(a, b member) int { return cmp.Or(cmp.Compare(a.cluster, b.cluster), cmp.Compare(a.use, b.use)) })
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
	return slices.ContainsFunc(s.byID[f.ID], func(m member) bool {
		return slices.ContainsFunc(f.VIPs, func(a netip.Addr) bool { return slices.Contains(s.use(m).VIPs, a) })
	})
}
