package verify

import "slices"

// maxPlayers bounds the nodes of a unit, as bits of a mask: MaxNodes and the bootstrap, and
// some more.
const maxPlayers = 8

// mask is a set of nodes: bit n is node n of the unit.
type mask uint8

func (m mask) has(x int) bool { return m>>x&1 == 1 }

// situation is the class of each node.
type situation []int

// field holds the election states of all nodes of a unit in a situation.
type field struct {
	unit *unit
	at   [maxPlayers]*electionState // by node; nil beyond the last
}

func (u *unit) field(s situation) *field {
	api := 0
	for x, class := range s {
		if u.nodes[x].classes[class].serves {
			api = 1
		}
	}
	f := &field{unit: u}
	for x, class := range s {
		f.at[x] = &u.nodes[x].election[class][api]
	}
	return f
}

func (f *field) nodes() []*electionState { return f.at[:len(f.unit.nodes)] }

// fit returns the nodes that can hold the VIP at all.
func (f *field) fit() (m mask) {
	for x, s := range f.nodes() {
		if s.fit {
			m |= 1 << x
		}
	}
	return m
}

// outranks reports whether node x, receiving y's adverts on that instance, must leave the VIP
// to it while both hold it: the higher priority wins, then the higher address (RFC 9568 section
// 6.4.3).
func (f *field) outranks(y, x, instance int) bool {
	py, px := f.at[y].priorities[instance], f.at[x].priorities[instance]
	if py != px || !f.unit.strict {
		return py >= px
	}
	a, b := f.unit.nodes[x].instances[instance].Source, f.unit.nodes[y].instances[instance].Source
	return a.Less(b)
}

// stepsDown reports whether x, one of the holders m, receives adverts of one that outranks it,
// on any of its instances: those of a sync group go together.
func (f *field) stepsDown(x int, m mask) bool {
	for y := range f.nodes() {
		if !m.has(y) {
			continue
		}
		for i, receives := range f.unit.receives[x][y] {
			if receives && f.outranks(y, x, i) {
				return true
			}
		}
	}
	return false
}

// stepsUp reports whether x, which is none of the holders m, takes the VIP: on some instance it
// receives no advert of a holder that is its equal or better. One that must not preempt
// receives none at all.
func (f *field) stepsUp(x int, m mask) bool {
	for i, own := range f.unit.nodes[x].instances {
		quiet := true
		for y := range f.nodes() {
			if m.has(y) && f.unit.receives[x][y][i] && (own.NoPreempt || f.at[y].priorities[i] >= f.at[x].priorities[i]) {
				quiet = false
			}
		}
		if quiet {
			return true
		}
	}
	return false
}

// next returns the possible holders after the next step of one node. The order of nodes is
// unknown: it depends on when each received an advert last.
func (f *field) next(m mask) []mask {
	var out []mask
	fit := f.fit()
	for x := range f.nodes() {
		switch {
		case !fit.has(x):
		case m.has(x) && f.stepsDown(x, m):
			out = append(out, m&^(1<<x))
		case !m.has(x) && f.stepsUp(x, m):
			out = append(out, m|1<<x)
		}
	}
	return out
}

// outcome holds the possible results of an election.
type outcome struct {
	// settled are the final sets of holders.
	settled []mask
	// passed are all sets on the way, settled ones included.
	passed []mask
	// endless are sets of holders that recur forever.
	endless []mask
}

// elect runs the election from holders m.
func (f *field) elect(m mask) outcome {
	e := election{field: f}
	e.visit(m & f.fit())
	return e.outcome
}

type election struct {
	*field
	outcome
	seen [1 << 8]uint8 // by set of holders; 1: on the current path, 2: done
	way  []mask
}

func (e *election) visit(m mask) {
	e.seen[m] = 1
	e.way = append(e.way, m)
	e.passed = append(e.passed, m)
	steps := e.next(m)
	if len(steps) == 0 {
		e.settled = append(e.settled, m)
	}
	for _, n := range steps {
		switch e.seen[n] {
		case 0:
			e.visit(n)
		case 1:
			if e.endless == nil {
				e.endless = slices.Clone(e.way[slices.Index(e.way, n):])
			}
		}
	}
	e.way = e.way[:len(e.way)-1]
	e.seen[m] = 2
}
