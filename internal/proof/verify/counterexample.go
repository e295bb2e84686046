package verify

// Counterexample is a sequence of events after which a check fails.
type Counterexample struct {
	Check Check `json:"check"`
	// Start is the initial state.
	Start []NodeState `json:"start"`
	// Changes happen in this order.
	Changes []Change `json:"changes,omitempty"`
	// End is the final state.
	End []NodeState `json:"end"`
	// Holders hold the VIP in the end, Should should, because of Why.
	Holders []string `json:"holders"`
	Should  string   `json:"should"`
	Why     string   `json:"why"`
}

// Change is one failure or repair.
type Change struct {
	What string `json:"what"`
	// Held are the nodes that held the VIP when it happened.
	Held []string `json:"held"`
}

// NodeState is the state of a node in a counterexample.
type NodeState struct {
	Name string `json:"name"`
	// Failed lists what does not work; empty where everything works.
	Failed []string `json:"failed,omitempty"`
	// Priorities lists the priorities of its VRRP instances; empty where it takes no part.
	Priorities []int `json:"priorities,omitempty"`
}

// path is a sequence of changes since a start. The first has none before it.
type path struct {
	before *path
	start  situation // for the first
	node   *player
	change change
	held   []string // the holders then
}

func (p *path) first() *path {
	for p.before != nil {
		p = p.before
	}
	return p
}

func (p *path) changes() []Change {
	if p.before == nil {
		return nil
	}
	return append(p.before.changes(), Change{p.node.describe(p.change), p.held})
}

func (u *unit) names(m mask) []string {
	out := []string{}
	for x, p := range u.nodes {
		if m.has(x) {
			out = append(out, p.name)
		}
	}
	return out
}

func (u *unit) states(at situation) []NodeState {
	var out []NodeState
	f := u.field(at)
	for x, p := range u.nodes {
		n := NodeState{Name: p.name, Failed: p.kind.describe(p.classes[at[x]].likeness)}
		if f.at[x].fit {
			n.Priorities = f.at[x].priorities
		}
		out = append(out, n)
	}
	return out
}

func (p *path) counterexample(v *view, wrong *violation) *Counterexample {
	return &Counterexample{
		Check: wrong.check, Start: v.unit.states(p.first().start), Changes: p.changes(), End: v.unit.states(v.situation),
		Holders: v.unit.names(v.holders), Should: wrong.should, Why: wrong.why,
	}
}
