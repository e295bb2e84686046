package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// clusterShape holds the properties of a cluster that its schedule depends on: the number of nodes
// and their roles. The numbers are places in the lab's plan.
type clusterShape struct {
	Nodes        int
	ControlPlane []int
	Routers      []int // nodes that start with a router
	// Racks are the nodes behind each router that knows the VIPs by BGP; none without BGP.
	Racks [][]int
}

// Fault is a planned fault.
type Fault struct {
	// At is its start, relative to its round; For is its duration, 0 if it is instantaneous.
	At, For time.Duration
	Kind    Kind
	// Nodes are the affected nodes.
	Nodes []int
	// What is the variant, such as the container to kill.
	What string
}

// Round is a sequence of faults. After it all of them are undone, and the cluster must come to
// rest.
type Round struct {
	Number int
	Faults []Fault
	// Length is the time until the last fault is over.
	Length time.Duration
}

// Limits restricts the faults of a schedule.
type Limits struct {
	Kinds []Kind // all if empty
	// AtOnce is the maximum number of simultaneous faults.
	AtOnce int
}

const (
	// roundLength is the approximate duration of the faults of a round.
	roundLength = 24 * time.Second
	// breathing is the longest time between the starts of two faults.
	breathing = 2500 * time.Millisecond
	// merciless is the period of rounds in which no node needs to stay healthy: one in three.
	merciless = 3
)

// newSchedule plans rounds of faults for at least the duration d. The same arguments give the same
// schedule, and each round depends only on the seed and its own number.
func newSchedule(seed uint64, d time.Duration, s clusterShape, l Limits) (out []Round) {
	for total := time.Duration(0); total < d; {
		r := newRound(seed, len(out), min(roundLength, d-total), s, l)
		out = append(out, r)
		total += roundLength
	}
	return out
}

// planner plans one round.
type planner struct {
	*rand.Rand
	shape     clusterShape
	limits    Limits
	merciless bool
	faults    []Fault
	kinds     []kind
}

func newRound(seed uint64, number int, length time.Duration, s clusterShape, l Limits) Round {
	p := &planner{
		Rand:  rand.New(rand.NewPCG(seed, uint64(number))),
		shape: s, limits: l,
	}
	p.merciless = p.IntN(merciless) == 0
	for _, k := range kinds {
		if (len(l.Kinds) == 0 || slices.Contains(l.Kinds, k.Kind)) && p.fits(k) && k.applies(len(s.Racks) > 0) {
			p.kinds = append(p.kinds, k)
		}
	}
	r := Round{Number: number}
	if len(p.kinds) == 0 {
		return r
	}
	for at := time.Duration(0); at < length; at += p.upTo(breathing/25, breathing) {
		if f, ok := p.pick(at); ok {
			p.faults = append(p.faults, f)
			r.Length = max(r.Length, f.At+f.For)
		}
	}
	r.Faults = p.faults
	return r
}

// fits reports whether a kind of fault has a possible target.
func (p *planner) fits(k kind) bool {
	switch k.place {
	case routerHost:
		return len(p.shape.Routers) > 0
	case controlPlane, allControlPlane:
		return len(p.shape.ControlPlane) > 0
	case someNodes:
		return p.shape.Nodes > 1
	}
	return true
}

// upTo returns a random time from the range, in whole milliseconds.
func (p *planner) upTo(least, most time.Duration) time.Duration {
	return (least + time.Duration(p.Int64N(int64(most-least)+1))).Truncate(time.Millisecond)
}

// attempts is the number of attempts to find a fault that is allowed next to the others.
const attempts = 12

// pick returns a fault that can start at a time, if there is one.
func (p *planner) pick(at time.Duration) (Fault, bool) {
	for range attempts {
		k := p.kinds[p.IntN(len(p.kinds))]
		f := Fault{At: at.Truncate(time.Millisecond), Kind: k.Kind, Nodes: p.where(k)}
		if len(k.what) > 0 {
			f.What = k.what[p.IntN(len(k.what))].name
			if f.What == "keepalived" && len(p.shape.Racks) > 0 {
				f.What = "bgp" // has its place
			}
		}
		if k.most > 0 {
			f.For = p.upTo(k.least, k.most)
		}
		if p.allowed(f) {
			return f, true
		}
	}
	return Fault{}, false
}

func (p *planner) where(k kind) []int {
	one := func(list []int) []int { return []int{list[p.IntN(len(list))]} }
	switch k.place {
	case anyNode:
		return []int{p.IntN(p.shape.Nodes)}
	case controlPlane:
		return one(p.shape.ControlPlane)
	case routerHost:
		return one(p.shape.Routers)
	case someNodes:
		some := p.Perm(p.shape.Nodes)[:1+p.IntN(p.shape.Nodes-1)]
		slices.Sort(some)
		return some
	case oneRack:
		return p.shape.Racks[p.IntN(len(p.shape.Racks))]
	case allControlPlane:
		return slices.Clone(p.shape.ControlPlane)
	}
	return nil
}

// lasting is the duration that an instantaneous fault counts with: until the killed process runs
// again.
const lasting = 3 * time.Second

// span returns the time in which a fault counts.
func (f Fault) span() (from, to time.Duration) { return f.At, f.At + max(f.For, lasting) }

// overlaps reports whether a fault counts at any time of a range.
func (f Fault) overlaps(from, to time.Duration) bool {
	begin, end := f.span()
	return begin < to && end > from
}

// parts returns the parts that a fault affects.
func (f Fault) parts() part {
	k := kindOf(f.Kind)
	p := k.parts
	for _, v := range k.what {
		if v.name == f.What || v.name == "keepalived" && f.What == "bgp" {
			p |= v.parts
		}
	}
	return p
}

// clusterWide are parts that exist only once.
const clusterWide = partConfig | partTopology | partGuard

// collides reports whether two faults affect the same part.
func (f Fault) collides(other Fault) bool {
	both := f.parts() & other.parts()
	everyNode := len(f.Nodes) == 0 || len(other.Nodes) == 0
	if both&clusterWide != 0 || everyNode && (both != 0 || f.Kind == other.Kind) {
		return true
	}
	return both != 0 && slices.ContainsFunc(f.Nodes, func(n int) bool { return slices.Contains(other.Nodes, n) })
}

// allowed reports whether a fault can be combined with the others at its time.
func (p *planner) allowed(f Fault) bool {
	_, end := f.span()
	atOnce := 1
	merciless, from, to := p.merciless, f.At, end
	// A deleted node takes a VIP as soon as no other node is there to reject it.
	watch := func(g Fault) {
		if g.Kind.deletes() {
			begin, end := g.span()
			merciless, from, to = false, min(from, begin), max(to, end)
		}
	}
	watch(f)
	for _, g := range p.faults {
		if !g.overlaps(f.At, end) {
			continue
		}
		if f.collides(g) {
			return false
		}
		atOnce++
		watch(g)
	}
	if atOnce > p.limits.AtOnce {
		return false
	}
	if merciless || !kindOf(f.Kind).impairs {
		return true
	}
	impaired := map[int]bool{}
	for _, g := range append(slices.Clone(p.faults), f) {
		if g.overlaps(from, to) && kindOf(g.Kind).impairs {
			for _, n := range g.Nodes {
				impaired[n] = true
			}
		}
	}
	// One node of those that share the work stays as it is.
	for _, group := range [][]int{p.shape.ControlPlane, p.shape.Routers} {
		if !slices.ContainsFunc(group, func(n int) bool { return !impaired[n] }) && len(group) > 0 {
			return false
		}
	}
	return true
}

// Text returns a schedule as lines of text; names are the nodes' names.
func Text(rounds []Round, names []string) string {
	var b strings.Builder
	for _, r := range rounds {
		fmt.Fprintf(&b, "round %d: %d faults in %v\n", r.Number, len(r.Faults), r.Length)
		for _, f := range r.Faults {
			fmt.Fprintf(&b, "%9.3fs  %s\n", f.At.Seconds(), f.text(names))
		}
	}
	return b.String()
}

// text describes a fault.
func (f Fault) text(names []string) string {
	words := []string{string(f.Kind)}
	if f.What != "" {
		words = append(words, f.What)
	}
	var on []string
	for _, n := range f.Nodes {
		if n < len(names) {
			on = append(on, names[n])
		}
	}
	if len(on) > 0 {
		words = append(words, "on", strings.Join(on, ", "))
	}
	if f.For > 0 {
		words = append(words, "for", f.For.String())
	}
	return strings.Join(words, " ")
}
