package verify

import (
	"slices"

	"github.com/vipgen/vipgen/internal/vrrp/keepalivedconf"
)

// search enumerates everything that can happen to a unit.
type search struct {
	*unit
	// row is the number of successive changes.
	row int
	// alike are sets of nodes that differ in name and address alone: their classes are
	// interchangeable.
	alike [][]int
	// done is the number of further changes that were examined from a situation with its
	// holders.
	done map[uint64]int
	// heldBy has the names of each set of holders.
	heldBy [][]string
	// combinations and orders count examined ones, equals included.
	combinations, orders int
	table                table
	found                *Counterexample
}

// changesInARow is the number of successive changes in a proof, with the election settled in
// between or not.
const changesInARow = 2

func (u *unit) search(row int) *search {
	s := &search{unit: u, row: row, done: map[uint64]int{}, table: table{}}
	for m := range 1 << len(u.nodes) {
		s.heldBy = append(s.heldBy, u.names(mask(m)))
	}
	for x := range u.nodes {
		i := slices.IndexFunc(s.alike, func(g []int) bool { return u.interchangeable(g[0], x) })
		if i < 0 {
			s.alike = append(s.alike, []int{x})
		} else {
			s.alike[i] = append(s.alike[i], x)
		}
	}
	return s
}

// interchangeable reports whether two nodes can be swapped.
func (u *unit) interchangeable(x, y int) bool {
	a, b := u.nodes[x], u.nodes[y]
	if u.strict || a.kind != b.kind || len(a.instances) != len(b.instances) {
		return false
	}
	for i := range a.instances {
		if a.instances[i].NoPreempt != b.instances[i].NoPreempt {
			return false
		}
	}
	for c := range a.election {
		for api := range a.election[c] {
			p, q := a.election[c][api], b.election[c][api]
			if p.fit != q.fit || !slices.Equal(p.priorities, q.priorities) {
				return false
			}
		}
	}
	swap := func(z int) int {
		switch z {
		case x:
			return y
		case y:
			return x
		}
		return z
	}
	for v := range u.nodes {
		for w := range u.nodes {
			if !slices.Equal(u.receives[v][w], u.receives[swap(v)][swap(w)]) {
				return false
			}
		}
	}
	return true
}

// run examines all situations, those with the fewest failures first, until the end or a
// counterexample, and calls progress in between.
func (s *search) run(progress func(done, total int)) {
	all := s.situations()
	for i, at := range all {
		if progress != nil {
			progress(i, len(all))
		}
		if s.start(at); s.found != nil {
			return
		}
	}
}

// situations lists those that differ by more than a swap of interchangeable nodes.
func (s *search) situations() []situation {
	var out []situation
	at := make(situation, len(s.nodes))
	order := slices.Concat(s.alike...)
	var fill func(n int)
	fill = func(n int) {
		if n == len(order) {
			out = append(out, slices.Clone(at))
			return
		}
		x, from := order[n], 0
		if n > 0 && s.together(order[n-1], x) {
			from = at[order[n-1]]
		}
		for c := from; c < len(s.nodes[x].classes); c++ {
			at[x] = c
			fill(n + 1)
		}
	}
	fill(0)
	slices.SortStableFunc(out, func(a, b situation) int { return s.failures(a) - s.failures(b) })
	return out
}

func (s *search) together(x, y int) bool {
	return slices.ContainsFunc(s.alike, func(g []int) bool { return slices.Contains(g, x) && slices.Contains(g, y) })
}

func (s *search) failures(at situation) (n int) {
	for x, c := range at {
		n += s.nodes[x].classes[c].failures
	}
	return n
}

// times returns the number of equivalent situations.
func (s *search) times(at situation) int {
	n := 1
	for _, g := range s.alike {
		count := map[int]int{}
		for i, x := range g {
			count[at[x]]++
			n = n * (i + 1) / count[at[x]] // exact: a multinomial coefficient
		}
	}
	return n
}

// start examines an initial situation, with every node that may hold the VIP in it.
func (s *search) start(at situation) {
	f := s.field(at)
	out := f.elect(0)
	times := s.times(at)
	s.combinations += times
	s.orders += times * s.countOrders(at)
	path := &path{start: at}
	if s.check(path, f, at, 0, out) {
		return
	}
	for i, m := range out.settled {
		if i > 0 {
			times = 0 // counted already
		}
		s.table.add(&view{f, at, 0, m}, times)
		s.follow(&moment{path: path, at: at, holders: m}, s.row)
		if s.found != nil {
			return
		}
	}
}

// countOrders returns the number of orders of two changes from a situation.
func (s *search) countOrders(at situation) (n int) {
	degree := func(x, c int) int { return len(s.nodes[x].classes[c].changes) }
	all := 0
	for x, c := range at {
		all += degree(x, c)
	}
	for x, c := range at {
		for _, ch := range s.nodes[x].classes[c].changes {
			n += all - degree(x, c) + degree(x, ch.to)
		}
	}
	return n
}

// moment is a point from which changes are followed.
type moment struct {
	path    *path
	at      situation
	holders mask
}

// follow applies every change, and so many more after it, at every stage of the election.
func (s *search) follow(now *moment, more int) {
	key := s.key(now.at, now.holders)
	if s.done[key] >= more {
		return
	}
	s.done[key] = more
	for x, c := range now.at {
		for _, ch := range s.nodes[x].classes[c].changes {
			s.change(now, x, ch, more)
			if s.found != nil {
				return
			}
		}
	}
}

func (s *search) change(now *moment, x int, ch change, more int) {
	at := slices.Clone(now.at)
	at[x] = ch.to
	holders := now.holders
	if s.claims(x, now.at[x], ch.to) {
		holders |= 1 << x
	}
	f := s.field(at)
	out := f.elect(holders)
	path := &path{before: now.path, node: s.nodes[x], change: ch, held: s.heldBy[now.holders]}
	if s.check(path, f, at, now.holders, out) || more == 1 {
		return
	}
	for _, m := range out.passed {
		s.follow(&moment{path: path, at: at, holders: m}, more-1)
		if s.found != nil {
			return
		}
	}
}

// claims reports whether a node takes the VIP at once because its keepalived starts now (state
// MASTER).
func (s *search) claims(x, before, now int) bool {
	p := s.nodes[x]
	return !p.classes[before].runs && p.classes[now].runs &&
		slices.ContainsFunc(p.instances, func(i keepalivedconf.Instance) bool { return i.Master })
}

// check judges the results of an election, and records a violation.
func (s *search) check(p *path, f *field, at situation, before mask, out outcome) bool {
	if len(out.endless) > 0 {
		all := mask(0)
		for _, m := range out.endless {
			all |= m
		}
		s.found = p.counterexample(&view{f, at, 0, all}, &violation{NoOscillation, "one of them, for good", "each repeatedly finds itself the better one"})
		return true
	}
	for _, m := range out.settled {
		v := &view{f, at, before, m}
		if wrong := v.judge(); wrong != nil {
			s.found = p.counterexample(v, wrong)
			return true
		}
	}
	return false
}

// key identifies a situation with its holders, without regard to swaps of interchangeable
// nodes.
func (s *search) key(at situation, holders mask) uint64 {
	var key uint64
	for _, g := range s.alike {
		var own [maxPlayers]uint64
		for i, x := range g {
			own[i] = uint64(at[x]) << 1
			if holders.has(x) {
				own[i] |= 1
			}
		}
		list := own[:len(g)]
		slices.Sort(list)
		for _, o := range list {
			key = key<<classBits | o
		}
	}
	return key
}

// classBits is the size of a class, with whether the node holds the VIP, in a key: a kind has
// at most 2 to the power of its parts of them.
const classBits = 64 / maxPlayers
