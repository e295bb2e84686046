package adopt

import (
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/ignition/diff"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/render"
)

// Rollout is a change that is applied to the cluster, with its effect on each pool.
type Rollout struct {
	// Name of the step.
	Name string `json:"name"`
	// Mode is set for a step of a migration at a planned instant, by mode files.
	Mode  bool        `json:"byModeFile,omitempty"`
	Pools []PoolCount `json:"pools"`
}

// PoolCount is the effect of a roll-out on the nodes of a pool, one after the other.
type PoolCount struct {
	Pool string `json:"pool"`
	// With and Without are the effects with and without vipgen's node disruption policy in
	// force. They are equal where the release has none.
	With    diff.Effect `json:"withPolicy"`
	Without diff.Effect `json:"withoutPolicy"`
	// Why is a reason for With.
	Why string `json:"why,omitempty"`
}

// Names of roll-outs.
const (
	rollAdopt   = "adopt"
	rollMigrate = "migrate to the target settings (spec.vrrp)"
	rollMode    = "write the mode file"
	rollSpec    = "set spec.vrrp"
	rollRemove  = "delete the mode file"
)

// Reboots returns how often the nodes of a pool reboot, directly or by mode files, with the
// node disruption policy and without.
func (p *Plan) Reboots(pool string, byModeFile bool) (with, without int) {
	for _, r := range p.Rollouts {
		if r.Name != rollAdopt && r.Mode != byModeFile {
			continue
		}
		for _, c := range r.Pools {
			if c.Pool == pool && c.With == diff.Reboot {
				with++
			}
			if c.Pool == pool && c.Without == diff.Reboot {
				without++
			}
		}
	}
	return with, without
}

// step is a change from one state of vipgen's output to the next.
type step struct {
	name     string
	mode     bool
	from, to *diff.Cluster
}

// steps renders every state that the cluster goes through.
func (p *Plan) steps() ([]step, error) {
	files, err := p.tree(p.cluster)
	if err != nil {
		return nil, err
	}
	first := output(files)
	out := []step{{rollAdopt, false, &diff.Cluster{}, first}}
	if p.migrated == nil {
		return out, nil
	}
	if files, err = p.tree(p.migrated); err != nil {
		return nil, err
	}
	migrated := output(files)
	target := p.migrated.Config.Spec.VRRP.Target
	m, err := p.cluster.Migrate(v1alpha1.ModeFileContent{Mode: target.Mode, Profile: target.Profile})
	if err != nil {
		return nil, err
	}
	if files, err = m.Files(); err != nil {
		return nil, err
	}
	mode := output(files)
	both, late := first.With(mode), migrated.With(mode)
	return append(out, step{rollMigrate, false, first, migrated},
		step{rollMode, true, first, both}, step{rollSpec, true, both, late}, step{rollRemove, true, late, migrated}), nil
}

// rollOut compares each state with the next, as the operator does.
func (p *Plan) rollOut() error {
	steps, err := p.steps()
	if err != nil {
		return err
	}
	for _, s := range steps {
		changes := diff.Compare(s.from.With(p.export), s.to.With(p.export))
		p.Rollouts = append(p.Rollouts, Rollout{s.name, s.mode, p.counts(changes)})
		if s.name == rollAdopt {
			p.overlaps(changes)
		}
	}
	return nil
}

func output(files []render.OutputFile) *diff.Cluster {
	c := &diff.Cluster{}
	for _, f := range files {
		_ = c.Add(f.Path, f.Data) // rendered, so it is readable
	}
	return c
}

// counts returns the effects of a step on all pools, with vipgen's policy and without.
func (p *Plan) counts(step diff.Result) (out []PoolCount) {
	for _, pool := range p.export.Pools() {
		c := PoolCount{Pool: pool}
		for _, x := range step.Pools {
			if x.Name != pool {
				continue
			}
			c.With, c.Without = x.Effect, x.Effect
			if p.options.DisruptionPolicy {
				c.Without = p.export.Effect(x.Changes)
			}
			if len(x.Reasons) > 0 {
				c.Why = x.Reasons[0].Change + ": " + x.Reasons[0].Why
			}
		}
		out = append(out, c)
	}
	return out
}

// overlaps records the MachineConfigs of others that have files of vipgen's.
func (p *Plan) overlaps(r diff.Result) {
	p.Replaced = append(p.Replaced, lists.Filter(r.Replaces, func(o diff.Overlap) bool { return o.Owner == diff.Users })...)
	p.Shadowed = append(p.Shadowed, lists.Filter(r.Shadowed, func(o diff.Overlap) bool {
		return !slices.Contains(p.options.Accept, o.Name) && !slices.Contains(p.options.Accept, o.Other)
	})...)
}

// tree returns the files that are applied to a cluster.
func (p *Plan) tree(c *render.Cluster) ([]render.OutputFile, error) {
	copied := *c
	copied.DisruptionPolicy = p.options.DisruptionPolicy
	return copied.Tree(render.Want{Formats: []render.Format{render.FormatMachineConfig}})
}

// afterMigration returns the cluster with vipgen's default VRRP settings for its platform, nil where
// its nodes hold no VIPs, or have these settings already.
func (p *Plan) afterMigration() *render.Cluster {
	if p.cluster.Config.Spec.LoadBalancer != v1alpha1.LoadBalancerInCluster {
		return nil
	}
	var v map[string]any
	if yaml.Unmarshal(p.Import.VIPConfig, &v) != nil {
		return nil // written by the importer
	}
	if spec, ok := v["spec"].(map[string]any); ok {
		if vrrp, ok := spec["vrrp"].(map[string]any); ok {
			for _, key := range []string{"mode", "profile", "version", "advertInterval"} {
				delete(vrrp, key)
			}
		}
	}
	text, err := yaml.Marshal(v)
	if err != nil {
		return nil
	}
	after, err := load(p.Import.InstallConfig, text)
	if err != nil || after.Config.Spec.VRRP.Target == p.cluster.Config.Spec.VRRP.Target {
		return nil
	}
	return after
}
