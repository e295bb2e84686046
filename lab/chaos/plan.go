package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// clusterShape is what of a cluster its schedule depends on: how many nodes, and which of
// them are what. The numbers are places in the lab's plan.
type clusterShape struct {
	Nodes        int
	ControlPlane []int
	Routers      []int // nodes that begin with a router
}

// Fault is one thing that happens.
type Fault struct {
	// At is when it begins, after the beginning of its round; For is how long it
	// lasts, 0 for what happens in a moment.
	At, For time.Duration
	Kind    Kind
	// Nodes are those that it happens to.
	Nodes []int
	// What is the variant, such as the container that is killed.
	What string
}

// Round is a time full of faults. After it all of them are undone, and the cluster
// has to come to rest.
type Round struct {
	Number int
	Faults []Fault
	// Length is when the last of them is over.
	Length time.Duration
}

// Limits say what a schedule may have in it.
type Limits struct {
	Kinds []Kind // all if empty
	// AtOnce is how many faults may be there at one time.
	AtOnce int
}

const (
	// roundLength is about how long faults go on before the cluster may come to
	// rest.
	roundLength = 24 * time.Second
	// breathing is the longest time between the beginnings of two faults.
	breathing = 2500 * time.Millisecond
	// merciless is one in how many rounds in which no node needs to stay healthy.
	merciless = 3
)

// newSchedule plans rounds of faults for at least that long. The same arguments
// give the same schedule, whatever happens to the cluster meanwhile, and each round
// depends on the seed and its own number alone.
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
		if (len(l.Kinds) == 0 || slices.Contains(l.Kinds, k.Kind)) && p.fits(k) {
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

// fits says whether there is anything that a kind could happen to.
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

// upTo is a time from the range, in whole milliseconds.
func (p *planner) upTo(least, most time.Duration) time.Duration {
	return (least + time.Duration(p.Int64N(int64(most-least)+1))).Truncate(time.Millisecond)
}

// attempts is how often it is tried to find a fault that goes with the others.
const attempts = 12

// pick finds a fault that can begin then, if there is one.
func (p *planner) pick(at time.Duration) (Fault, bool) {
	for range attempts {
		k := p.kinds[p.IntN(len(p.kinds))]
		f := Fault{At: at.Truncate(time.Millisecond), Kind: k.Kind, Nodes: p.where(k)}
		if len(k.what) > 0 {
			f.What = k.what[p.IntN(len(k.what))].name
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
	case allControlPlane:
		return slices.Clone(p.shape.ControlPlane)
	}
	return nil
}

// lasting is how long what happens in a moment counts as going on: until what was
// killed is there again.
const lasting = 3 * time.Second

// span is for how long a fault counts.
func (f Fault) span() (from, to time.Duration) { return f.At, f.At + max(f.For, lasting) }

// overlaps says whether a fault counts at any time between those given.
func (f Fault) overlaps(from, to time.Duration) bool {
	begin, end := f.span()
	return begin < to && end > from
}

// parts are what a fault is about.
func (f Fault) parts() part {
	k := kindOf(f.Kind)
	p := k.parts
	for _, v := range k.what {
		if v.name == f.What {
			p |= v.parts
		}
	}
	return p
}

// clusterWide are parts that there is one of.
const clusterWide = ofConfig | ofTopology | ofGuard

// collides says that two faults are about the same.
func (f Fault) collides(other Fault) bool {
	both := f.parts() & other.parts()
	if both&clusterWide != 0 || f.Kind == other.Kind && len(f.Nodes) == 0 {
		return true
	}
	return both != 0 && slices.ContainsFunc(f.Nodes, func(n int) bool { return slices.Contains(other.Nodes, n) })
}

// allowed says whether a fault goes with those that are there at its time.
func (p *planner) allowed(f Fault) bool {
	_, end := f.span()
	atOnce := 1
	merciless, from, to := p.merciless, f.At, end
	// One that was deleted holds a VIP if for any moment nobody is there to tell it.
	watch := func(g Fault) {
		if g.Kind == deletedNode {
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
	// One of those that share the work stays as it is.
	for _, group := range [][]int{p.shape.ControlPlane, p.shape.Routers} {
		if !slices.ContainsFunc(group, func(n int) bool { return !impaired[n] }) && len(group) > 0 {
			return false
		}
	}
	return true
}

// Text is a schedule in lines; names are those of the nodes.
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

// text is a fault in words.
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
