package verify

import (
	"net/netip"
	"reflect"
	"slices"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/render"
)

// Report is the result of the proof, for every VIP.
type Report struct {
	Cluster string  `json:"cluster"`
	Proofs  []Proof `json:"proofs"`
	// OwnRequests describes the requests of programs on the nodes, by pool; none without API
	// VIPs on nodes.
	OwnRequests []OwnRequests `json:"ownRequests,omitempty"`
}

// Holds reports whether there is no counterexample, and no own requests depend on a VIP without
// need.
func (r *Report) Holds() bool {
	return !slices.ContainsFunc(r.Proofs, func(p Proof) bool { return p.Counterexample != nil }) &&
		!slices.ContainsFunc(r.OwnRequests, func(o OwnRequests) bool { return o.Problem != "" })
}

// Proof is the proof for VIPs of one group at one stage of the cluster's life.
type Proof struct {
	Group string                `json:"group"`
	VIPs  []netip.Addr          `json:"vips"`
	Stage string                `json:"stage"`
	VRRP  v1alpha1.VRRPSettings `json:"vrrp"`
	// Nodes lists the nodes that can hold the VIPs.
	Nodes  []string `json:"nodes"`
	Notes  []string `json:"notes,omitempty"`
	Checks []Check  `json:"checks"`
	// Table lists the holders of the VIPs by situation; it is incomplete with a counterexample.
	Table []Row `json:"table,omitempty"`
	// Combinations of working and failed parts were examined, and Orders of two changes after
	// them.
	Combinations int `json:"combinations"`
	Orders       int `json:"orders"`
	// Counterexample is nil where all checks pass.
	Counterexample *Counterexample `json:"counterexample,omitempty"`
}

// Options of a proof.
type Options struct {
	// Nodes of each group to examine, at most; 0 means MaxNodes.
	Nodes int
	// Template is the template of keepalived.conf; nil means the shipped one.
	Template []byte
	// Progress is called during the proof of a group; it may be nil.
	Progress func(group string, done, total int)
}

// Cluster checks the conditions for a cluster's VIPs. The error is for an unreadable
// configuration.
func Cluster(c *render.Cluster, o Options) (*Report, error) {
	setups, err := Setups(c, o)
	if err != nil {
		return nil, err
	}
	r := &Report{Cluster: c.Config.Metadata.Name, Proofs: []Proof{}, OwnRequests: Requests(c, setups)}
	for i := range setups {
		if c.Config.Spec.AnnounceOf(&setups[i].Group).Routed() {
			r.Proofs = append(r.Proofs, setups[i].proveRouted())
			continue
		}
		list, err := setups[i].Prove(o.Progress)
		if err != nil {
			return nil, err
		}
		r.Proofs = append(r.Proofs, list...)
	}
	return r, nil
}

// Prove checks the conditions for the VIPs of one setup: it returns a proof for each that moves
// by itself, with equal ones merged.
func (s *Setup) Prove(progress func(group string, done, total int)) ([]Proof, error) {
	list, err := units(s)
	if err != nil {
		return nil, err
	}
	var out []Proof
	for _, u := range list {
		p := s.prove(u, progress)
		if n := len(out); n > 0 && alike(out[n-1], p) {
			out[n-1].VIPs = append(out[n-1].VIPs, p.VIPs...)
		} else {
			out = append(out, p)
		}
	}
	if s.Group.Together && len(list) > 1 {
		if c := apart(list); c != nil {
			out[0].Counterexample = c
		}
	}
	return out, nil
}

// prove examines everything that can happen to a unit.
func (s *Setup) prove(u *unit, progress func(group string, done, total int)) Proof {
	p := Proof{Group: s.Group.Name, VIPs: slices.Clone(u.vips), Stage: s.Stage, VRRP: s.VRRP, Nodes: []string{}, Notes: s.Notes, Checks: s.checks()}
	p.Nodes = append(p.Nodes, lists.Map(u.nodes, func(n *player) string { return n.name })...)
	for _, n := range s.Nodes {
		if !slices.Contains(p.Nodes, n.Facts.Name) {
			p.Notes = append(slices.Clip(p.Notes), n.Facts.Name+" has no VRRP instance for this VIP, and takes no part")
		}
	}
	if len(u.nodes) == 0 {
		p.Counterexample = &Counterexample{Check: Serves, Holders: []string{}, Should: "some node", Why: "no node has a VRRP instance for it"}
		return p
	}
	search := u.search(changesInARow)
	search.run(func(done, total int) {
		if progress != nil {
			progress(s.Group.Name, done, total)
		}
	})
	p.Table, p.Combinations, p.Orders = search.table.rows(), search.combinations, search.orders
	if search.found != nil {
		p.Counterexample = u.simplest(search.found)
	}
	return p
}

// simplest searches a counterexample with fewer changes, even with more initial failures: it is
// easier to follow.
func (u *unit) simplest(found *Counterexample) *Counterexample {
	for row := range len(found.Changes) {
		s := u.search(row)
		s.run(nil)
		if s.found != nil {
			return s.found
		}
	}
	return found
}

// alike reports whether two proofs differ in the VIP alone.
func alike(a, b Proof) bool {
	b.VIPs = a.VIPs
	return a.Counterexample == nil && reflect.DeepEqual(a, b)
}

// apart finds a situation in which VIPs that belong together can be on different nodes.
func apart(list []*unit) *Counterexample {
	a, b := list[0], list[1]
	if len(a.nodes) != len(b.nodes) {
		return nil // a node that takes part in one of them alone is fit for neither
	}
	s := a.search(0)
	for _, at := range s.situations() {
		for _, m := range a.field(at).elect(0).settled {
			for _, n := range b.field(at).elect(0).settled {
				if m != n {
					p := &path{start: at}
					return p.counterexample(&view{a.field(at), at, 0, m | n}, &violation{Together, "one of them, both VIPs",
						"nothing ties " + a.vips[0].String() + " and " + b.vips[0].String() + " together"})
				}
			}
		}
	}
	return nil
}
