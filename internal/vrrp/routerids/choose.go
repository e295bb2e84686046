package routerids

import (
	"cmp"
	"slices"
)

// keep returns the members of a colliding set that keep their ID: many of
// them, without collisions among them, first of all those that cannot change.
func (s *search) keep(part []member, r *Report) []member {
	var kept, rest []member
	for _, m := range part {
		if s.use(m).Fixed == "" {
			continue
		}
		if i := slices.IndexFunc(kept, func(k member) bool { return s.collide(k, m) }); i >= 0 {
			r.unsolved(s, m, s.user(kept[i])+" also has it, and cannot change either: "+s.use(m).Fixed)
		}
		kept = append(kept, m)
	}
	for _, m := range part {
		if s.use(m).Fixed == "" && !slices.ContainsFunc(kept, func(k member) bool { return s.collide(k, m) }) {
			rest = append(rest, m)
		}
	}
	// IDs chosen by the user first, so that they win ties.
	slices.SortStableFunc(rest, func(a, b member) int { return cmp.Compare(rank(s.use(a)), rank(s.use(b))) })
	return append(kept, s.greedy(rest)...)
}

func rank(u *Use) int {
	if u.Chosen {
		return 0
	}
	return 1
}

// greedy repeatedly takes the member with the fewest collisions. For nested networks, as
// CIDR networks are, the result is the largest set, too.
func (s *search) greedy(list []member) []member {
	left := slices.Clone(list)
	var out []member
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
		left = slices.DeleteFunc(left, func(x member) bool { return x == m || s.collide(x, m) })
	}
	return out
}

// assign finds a free ID for each member that has to change: the next one that is free on
// its network.
func (s *search) assign(change []member, r *Report) {
	slices.SortFunc(change, func(a, b member) int { return cmp.Or(cmp.Compare(a.cluster, b.cluster), cmp.Compare(a.use, b.use)) })
	moved := map[member]int{}
	for _, m := range change {
		use := s.use(m)
		if use.Field == "" {
			r.unsolved(s, m, "no field gives this group another ID")
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
			r.unsolved(s, m, "all 255 IDs are taken on this network; part it, or move clusters to another")
			continue
		}
		moved[m] = to
		c := &s.clusters[m.cluster]
		r.Overrides = append(r.Overrides, Override{c.Name, c.VIPConfig, use.Field, use.ID, to})
	}
}

func (s *search) taken(m member, moved map[member]int) *[256]bool {
	var out [256]bool
	for id, who := range s.reservedFor(m.cluster) {
		out[id] = who != ""
	}
	use := s.use(m)
	for _, c := range s.neighbours(m.cluster) {
		for u, other := range s.clusters[c].Uses {
			if c != m.cluster && !(use.IPv4 && other.IPv4 || use.IPv6 && other.IPv6) {
				continue // another family
			}
			out[other.ID&255] = true
			out[moved[member{c, u}]&255] = true
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
