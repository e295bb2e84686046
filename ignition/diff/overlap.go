package diff

import (
	"maps"
	"slices"

	"github.com/vipgen/vipgen/ignition"
)

// Overlap is a file or unit in two MachineConfigs of a pool, one of them vipgen's. The one that
// the operator merges last applies.
type Overlap struct {
	Pool string `json:"pool"`
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Vipgen is vipgen's MachineConfig, Other the other one, Owner its owner.
	Vipgen string `json:"vipgen"`
	Other  string `json:"other"`
	Owner  string `json:"owner"`
	// Same is set where both have the same contents.
	Same bool `json:"same,omitempty"`
}

// overlaps finds what vipgen's MachineConfigs of a pool share with others of it. A file of
// vipgen's is shadowed if any order that the operator may use shadows it.
func (r *Result) overlaps(pool string, docs []ignition.Document, orders []order) {
	type pair struct{ other, kind, name string }
	var found []Overlap
	shadowed := map[pair]bool{}
	for n, by := range orders {
		sorted := inPool(docs, pool, by)
		own := merge(slices.DeleteFunc(slices.Clone(sorted), func(d ignition.Document) bool { return owner(d) != ownVipgen }))
		at := map[string]int{}
		for i, d := range sorted {
			at[d.Name] = i
		}
		for i, other := range sorted {
			if owner(other) == ownVipgen {
				continue
			}
			for _, o := range sharedItems(own, merge([]ignition.Document{other})) {
				o.Pool, o.Other, o.Owner = pool, other.Name, owner(other)
				if p := (pair{o.Other, o.Kind, o.Name}); at[o.Vipgen] < i {
					shadowed[p] = true
				}
				if n == 0 {
					found = append(found, o)
				}
			}
		}
	}
	for _, o := range found {
		if shadowed[pair{o.Other, o.Kind, o.Name}] {
			r.Shadowed = append(r.Shadowed, o)
		} else {
			r.Replaces = append(r.Replaces, o)
		}
	}
}

// sharedItems returns what vipgen's state shares with another.
func sharedItems(a, b nodeState) []Overlap {
	var out []Overlap
	for _, name := range slices.Sorted(maps.Keys(a.files)) {
		if f, ok := b.files[name]; ok {
			out = append(out, Overlap{Kind: kindFile, Name: name, Vipgen: a.files[name].from, Same: string(f.Contents) == string(a.files[name].Contents)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.units)) {
		if u, ok := b.units[name]; ok && u.Contents != "" {
			out = append(out, Overlap{Kind: kindUnit, Name: name, Vipgen: a.units[name].from, Same: u.text() == a.units[name].text()})
		}
	}
	return out
}
