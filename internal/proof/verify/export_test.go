package verify

import (
	"slices"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// Foreseen is a situation in which every keepalived runs, with the holder of the VIP, which is
// the same for every course of the election.
type Foreseen struct {
	// Files returns the files that the agents write, by node and path.
	Files   map[string]map[string]string
	Holders []string
}

// Foresee returns the situations of a setup with one outcome only.
func Foresee(s *Setup) ([]Foreseen, error) {
	list, err := units(s)
	if err != nil {
		return nil, err
	}
	u := list[0]
	var out []Foreseen
	for _, at := range u.search(0).situations() {
		settled := u.field(at).elect(0).settled
		stops := func(m mask) bool { return m != settled[0] }
		if !u.allRun(at) || slices.ContainsFunc(settled, stops) || u.moves(at) {
			continue
		}
		f := Foreseen{Files: map[string]map[string]string{}, Holders: u.names(settled[0])}
		for x, p := range u.nodes {
			if f.Files[p.name], err = p.files(u, at, x); err != nil {
				return nil, err
			}
		}
		out = append(out, f)
	}
	return out, nil
}

// moves reports whether the previous holder of the VIP makes a difference.
func (u *unit) moves(at situation) bool {
	f := u.field(at)
	for m := range mask(1) << len(u.nodes) {
		if !slices.Equal(f.elect(m).settled, f.elect(0).settled) {
			return true
		}
	}
	return false
}

func (u *unit) allRun(at situation) bool {
	for x, c := range at {
		if !u.nodes[x].classes[c].runs {
			return false
		}
	}
	return true
}

func (p *player) files(u *unit, at situation, x int) (map[string]string, error) {
	api := false
	for y, c := range at {
		api = api || u.nodes[y].classes[c].serves
	}
	out := map[string]string{}
	_, terms := vrrp.PriorityTerms(u.group, p.role)
	for _, t := range terms {
		on := t.On(p.kind.health(p.classes[at[x]].likeness, api))
		out[v1alpha1.TrackDir+"/"+t.Name] = map[bool]string{false: "0\n", true: "1\n"}[on]
	}
	return out, nil
}

// ProveOneByOne proves without treating equivalent nodes as one.
func (s *Setup) ProveOneByOne() (Proof, error) {
	list, err := units(s)
	if err != nil {
		return Proof{}, err
	}
	list[0].strict = true
	return s.prove(list[0], nil), nil
}
