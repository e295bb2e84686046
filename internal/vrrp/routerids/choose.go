package routerids

import (
	"cmp"
	"fmt"
	"slices"
)

// maxExact is the largest set for which the best choice is searched exhaustively; for
// larger ones a good choice is enough.
const maxExact = 24

// keep returns the members of a colliding set that keep their ID: as many as possible
// without collisions among them, first of all those that cannot change.
func (s *search) keep(part []Member, r *Report) []Member {
	var kept, rest []Member
	for _, m := range part {
		if s.use(m).Fixed == "" {
			continue
		}
		if i := slices.IndexFunc(kept, func(k Member) bool { return s.collide(k, m) }); i >= 0 {
			r.Unsolved = append(r.Unsolved, Unsolved{m, fmt.Sprintf("%s's %s also has it, and cannot change either: %s",
				s.clusters[kept[i].Cluster].Name, s.use(kept[i]).Group, s.use(m).Fixed)})
		}
		kept = append(kept, m)
	}
	for _, m := range part {
		if s.use(m).Fixed == "" && !slices.ContainsFunc(kept, func(k Member) bool { return s.collide(k, m) }) {
			rest = append(rest, m)
		}
	}
	// IDs chosen by the user first, so that they win ties.
	slices.SortStableFunc(rest, func(a, b Member) int { return cmp.Compare(rank(s.use(a)), rank(s.use(b))) })
	if len(rest) <= maxExact {
		return append(kept, s.largestSet(rest)...)
	}
	return append(kept, s.greedy(rest)...)
}

func rank(u *Use) int {
	if u.Chosen {
		return 0
	}
	return 1
}

// largestSet returns the largest set without collisions by exhaustive search; of several, the
// one with the first members.
func (s *search) largestSet(list []Member) []Member {
	against := make([]uint32, len(list))
	for i := range list {
		for j := range list {
			if i != j && s.collide(list[i], list[j]) {
				against[i] |= 1 << j
			}
		}
	}
	var best uint32
	bestSize := -1
	var try func(i int, taken uint32, size int)
	try = func(i int, taken uint32, size int) {
		if size+len(list)-i <= bestSize {
			return
		}
		if i == len(list) {
			best, bestSize = taken, size
			return
		}
		if against[i]&taken == 0 {
			try(i+1, taken|1<<i, size+1)
		}
		try(i+1, taken, size)
	}
	try(0, 0, 0)
	var out []Member
	for i, m := range list {
		if best&(1<<i) != 0 {
			out = append(out, m)
		}
	}
	return out
}

// greedy repeatedly takes the member with the fewest collisions. For nested networks, as
// CIDR networks are, the result is the largest set, too.
func (s *search) greedy(list []Member) []Member {
	left := slices.Clone(list)
	var out []Member
	for len(left) > 0 {
		best, fewest := 0, len(left)+1
		for i, a := range left {
			n := 0
			for _, b := range left {
				if a != b && s.collide(a, b) {
					n++
				}
			}
			if n < fewest {
				best, fewest = i, n
			}
		}
		m := left[best]
		out = append(out, m)
		left = slices.DeleteFunc(left, func(x Member) bool { return x == m || s.collide(x, m) })
	}
	return out
}

// assign finds a free ID for each member that has to change: the next one that is free on
// its network.
func (s *search) assign(change []Member, r *Report) {
	slices.SortFunc(change, func(a, b Member) int { return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Use, b.Use)) })
	moved := map[Member]int{}
	for _, m := range change {
		use := s.use(m)
		if use.Field == "" {
			r.Unsolved = append(r.Unsolved, Unsolved{m, "no field gives this group another ID"})
			continue
		}
		taken := s.taken(m, moved)
		to := 0
		for step := 1; step < 255; step++ {
			if id := (use.ID-1+step)%255 + 1; !taken[id] {
				to = id
				break
			}
		}
		if to == 0 {
			r.Unsolved = append(r.Unsolved, Unsolved{m, "all 255 IDs are taken on this network; part it, or move clusters to another"})
			continue
		}
		moved[m] = to
		r.Overrides = append(r.Overrides, Override{m, use.ID, to})
	}
}

func (s *search) taken(m Member, moved map[Member]int) *[256]bool {
	var out [256]bool
	for id, who := range s.reservedFor(m.Cluster) {
		out[id] = who != ""
	}
	use := s.use(m)
	for _, c := range s.neighbours(m.Cluster) {
		for u, other := range s.clusters[c].Uses {
			if c != m.Cluster && !(use.IPv4 && other.IPv4 || use.IPv6 && other.IPv6) {
				continue // another family
			}
			out[other.ID&255] = true
			out[moved[Member{c, u}]&255] = true
		}
	}
	return &out
}

// neighbours returns the clusters on the network of a cluster, itself included.
func (s *search) neighbours(cluster int) []int {
	if out, ok := s.near[cluster]; ok {
		return out
	}
	var out []int
	for c := range s.clusters {
		if c == cluster || sharedNetwork(&s.clusters[c], &s.clusters[cluster]) != "" {
			out = append(out, c)
		}
	}
	s.near[cluster] = out
	return out
}
