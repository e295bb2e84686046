package adopt

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"text/template"
	"unicode"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/ignition/diff"
	"github.com/vipgen/vipgen/internal/day2/importer"
	"github.com/vipgen/vipgen/internal/lists"
)

//go:embed steps.md.tmpl
var stepsPage string

// stepsData is the data of the page of steps.
type stepsData struct {
	*Plan
	Export string
	Pools  []string
	// Adopts and Migrates are the lines of vipgen diff for the two roll-outs.
	Adopts, Migrates    []string
	Policy              bool // vipgen's own
	Canary, CanaryNodes string
	Apart, InCluster    bool
	Initial             v1alpha1.VRRPSettings
	// Target are the settings to migrate to; nil where there is no migration.
	Target *v1alpha1.VRRPSettings
}

// Steps returns the page of the written directory: what to do, in order, and what each step
// does to nodes.
func (p *Plan) Steps() string {
	d := stepsData{
		Plan: p, Export: ExportKinds, Pools: lists.Map(p.export.Pools(), cell), Policy: p.options.DisruptionPolicy,
		Canary: p.options.Canary, CanaryNodes: cmp.Or(strings.Join(p.options.CanaryNodes, " "), "NODE"),
		Apart:     slices.ContainsFunc(p.Import.Lost, func(l importer.Loss) bool { return l.Apart }),
		InCluster: p.cluster.Config.Spec.LoadBalancer == v1alpha1.LoadBalancerInCluster, Initial: p.cluster.Config.Spec.VRRP.Initial(),
		Adopts: poolLines(p.Rollouts[0], func(c PoolCount) diff.Effect { return c.With }),
	}
	if p.migrated != nil {
		d.Target = &p.migrated.Config.Spec.VRRP.Target
		d.Migrates = poolLines(p.Rollouts[1], func(c PoolCount) diff.Effect {
			if d.Policy {
				return c.With
			}
			return c.Without
		})
	}
	n := 0
	page := template.Must(template.New(StepsName).Funcs(template.FuncMap{
		"step":    func() int { n++; return n },
		"cell":    cell,
		"reboots": p.rebootCells,
		"await":   func(name, bound string) string { return strings.Join(AwaitPool(name, bound), "\n") },
	}).Parse(stepsPage))
	var b strings.Builder
	if err := page.Execute(&b, d); err != nil {
		panic(err) // the page is part of the program, and tested
	}
	return b.String()
}

// rebootCells returns the number of reboots of each pool, as cells of a table.
func (p *Plan) rebootCells(byModeFile bool) string {
	return strings.Join(lists.Map(p.Rollouts[0].Pools, func(c PoolCount) string {
		with, without := p.Reboots(c.Pool, byModeFile)
		if with == without {
			return fmt.Sprint(with)
		}
		return fmt.Sprintf("%d; %d without the node disruption policy", with, without)
	}), " | ")
}

// Kinds lists the objects that a plan reads, and ExportKinds exports them.
const (
	kindsOfConfig = "clusterversion,controllerconfig,infrastructure,network.config,dns.config,ingress.config,"
	kindsOfNodes  = "machineconfig,machineconfigpool,machineconfiguration.operator.openshift.io,node"
	Kinds         = kindsOfConfig + kindsOfNodes
	ExportKinds   = "oc get " + kindsOfConfig + "\\\n" + kindsOfNodes + " -o yaml"
)

// poolLines returns the lines of vipgen diff about the pools that a roll-out changes.
func poolLines(r Rollout, effect func(PoolCount) diff.Effect) (out []string) {
	for _, c := range r.Pools {
		if e := effect(c); e != diff.Nothing {
			out = append(out, fmt.Sprintf("  pool %s: %s", cell(c.Pool), e))
		}
	}
	return out
}

// cell returns the cluster's text without Markdown syntax and line breaks.
func cell(text string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("|`<>[]*\\", r) || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, text)
}

// String returns a form such as "reboot", or both effects where they differ.
func (c PoolCount) String() string {
	if c.With == c.Without {
		return c.With.String()
	}
	return fmt.Sprintf("%s; without the node disruption policy: %s", c.With, c.Without)
}

// AwaitPool returns the commands that wait until a pool has taken what was applied: right after
// that it still is Updated for some seconds. The first one waits for the beginning.
func AwaitPool(name, bound string) []string {
	wait := "oc wait machineconfigpool " + name + " --for=condition="
	return []string{wait + "Updating --timeout=5m", wait + "Updated --timeout=" + bound}
}
