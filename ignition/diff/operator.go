package diff

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/vipgen/vipgen/ignition"
)

// Item is a file or unit that nodes of a pool get.
type Item struct {
	// Kind is file or unit.
	Kind string
	Name string
	// From is the MachineConfig that has it.
	From string
	// Text is the contents of a file; of a unit, whether it is enabled, its contents and
	// its drop-ins.
	Text string
	// Contents are those of a unit without its drop-ins.
	Contents string
	// Dropins are the drop-ins of a unit.
	Dropins []ignition.Dropin
}

// Pools are those that MachineConfigs are for: master, arbiter, worker, then others.
func (c *Cluster) Pools() []string { return pools(c.configs) }

// Operators are the files and units that the operator's own MachineConfigs give to nodes
// of a pool, files first, by name.
func (c *Cluster) Operators(pool string) []Item {
	return items(inPool(c.of(ownOperator), pool, orders(c.Release)[0]))
}

// Vipgens are the files and units that vipgen's MachineConfigs give to nodes of a pool.
func (c *Cluster) Vipgens(pool string) []Item {
	return items(inPool(c.of(ownVipgen), pool, orders(c.Release)[0]))
}

// With puts the MachineConfigs and objects of another side to those of c. Of two objects
// with one name, that of c counts, and so does its release.
func (c *Cluster) With(other *Cluster) *Cluster {
	return &Cluster{Release: cmp.Or(c.Release, other.Release), configs: slices.Concat(c.configs, other.configs), objects: slices.Concat(c.objects, other.objects)}
}

func items(docs []ignition.Document) (out []Item) {
	s := merge(docs)
	for _, name := range slices.Sorted(maps.Keys(s.files)) {
		f := s.files[name]
		out = append(out, Item{Kind: kindFile, Name: name, From: f.from, Text: string(f.Contents)})
	}
	for _, name := range slices.Sorted(maps.Keys(s.units)) {
		u := s.units[name]
		out = append(out, Item{Kind: kindUnit, Name: name, From: u.from, Text: u.text(), Contents: u.Contents, Dropins: u.Dropins})
	}
	return out
}

// OwnPolicy reports whether the cluster has a node disruption policy that somebody wrote, and
// whether it is known at all: an export may lack the MachineConfiguration.
func (c *Cluster) OwnPolicy() (own, known bool) {
	for _, o := range c.objects {
		if o.kind != "MachineConfiguration" || o.name != "cluster" {
			continue
		}
		var m struct {
			Spec struct {
				Policy policyJSON `json:"nodeDisruptionPolicy"`
			} `json:"spec"`
		}
		if json.Unmarshal(o.raw, &m) == nil {
			p := m.Spec.Policy
			return len(p.Files)+len(p.Units)+len(p.SSHKey.Actions) > 0, true
		}
	}
	return false, false
}

// WithoutVipgens is what the operator does to nodes of a pool when vipgen's MachineConfigs are
// deleted.
func (c *Cluster) WithoutVipgens(pool string) Effect {
	others := &Cluster{configs: c.foreign(), objects: c.objects}
	for _, p := range Compare(c, others).Pools {
		if p.Name == pool {
			return p.Effect
		}
	}
	return Nothing
}
