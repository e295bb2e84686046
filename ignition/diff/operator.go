package diff

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/vipgen/vipgen/ignition"
)

// Item is a file or unit of a pool's nodes.
type Item struct {
	// Kind is file or unit.
	Kind string
	Name string
	// From is the MachineConfig that has it.
	From string
	// Text is the contents of a file; for a unit, whether it is enabled, its contents and its
	// drop-ins.
	Text string
	// Contents are a unit's without its drop-ins.
	Contents string
	// Dropins are the drop-ins of a unit.
	Dropins []ignition.Dropin
}

// Pools returns the pools with MachineConfigs: master, arbiter, worker, then others.
func (c *Cluster) Pools() []string { return pools(c.configs) }

// OperatorItems returns the files and units of the operator's own MachineConfigs on nodes of a
// pool, files first, by name.
func (c *Cluster) OperatorItems(pool string) []Item {
	return items(inPool(c.ownedBy(ownOperator), pool, orders(c.Release)[0]))
}

// VipgenItems returns the files and units of vipgen's MachineConfigs on nodes of a pool.
func (c *Cluster) VipgenItems(pool string) []Item {
	return items(inPool(c.ownedBy(ownVipgen), pool, orders(c.Release)[0]))
}

// With adds the MachineConfigs and objects of another side. Of two objects with one name c's is
// kept, and so is its release.
func (c *Cluster) With(other *Cluster) *Cluster {
	return &Cluster{Release: cmp.Or(c.Release, other.Release), configs: slices.Concat(c.configs, other.configs), objects: slices.Concat(c.objects, other.objects)}
}

// Effect returns the operator's effect for changes of a pool under the cluster's node disruption
// policy.
func (c *Cluster) Effect(changes []Change) Effect {
	p, _ := c.policy(c.Release)
	effect, _ := p.outcome(changes)
	return effect
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

// OwnPolicy reports whether the user wrote a node disruption policy, and whether that is known:
// an export may lack the MachineConfiguration.
func (c *Cluster) OwnPolicy() (own, known bool) {
	for _, o := range c.objects {
		if !o.isPolicy() {
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

// WithoutVipgens returns the effect on nodes of a pool when vipgen's MachineConfigs are
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
