package adopt

import (
	"fmt"
	"path"
	"slices"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/ignition/diff"
	"github.com/vipgen/vipgen/internal/day2/importer"
	"github.com/vipgen/vipgen/render"
)

// Options are the options of the command line.
type Options struct {
	importer.Given
	// Accept lists files and units of the operator that the contract does not list, and
	// MachineConfigs that may replace vipgen's files.
	Accept []string
	// Canary is the name of a pool to update first, or empty. CanaryNodes are the workers that
	// are migrated to it.
	Canary      string
	CanaryNodes []string
}

// Plan is the migration of a cluster to vipgen.
type Plan struct {
	Cluster string `json:"cluster"`
	// Release is OpenShift's, without a patch level.
	Release string `json:"release"`
	// Items are the operator's files and units for VIPs, and vipgen's.
	Items []Item `json:"items"`
	// Others is the number of the operator's other files and units, which are left alone.
	Others int `json:"others"`
	// Accepted are accepted items that the contract does not list.
	Accepted []Unknown `json:"accepted"`
	// Unknown lists the other items outside the contract; any of them prevents writing.
	Unknown []Unknown `json:"unknown"`
	// Replaced are files of other MachineConfigs that vipgen's replace.
	Replaced []diff.Overlap `json:"replaced"`
	// Shadowed are vipgen's files that other MachineConfigs replace.
	Shadowed []diff.Overlap `json:"shadowed"`
	Rollouts []Rollout      `json:"rollouts"`
	Images   []Image        `json:"images"`
	// Notes are facts that the export lacks, and what to do about them.
	Notes []string `json:"notes"`
	// Import is the result of `vipgen import`.
	Import *importer.Result `json:"import"`

	observed *importer.Observed
	cluster  *render.Cluster
	migrated *render.Cluster // with vipgen's own VRRP settings; nil if they do not change
	export   *diff.Cluster
	options  Options
}

// Read returns the plan for an export. The list has every problem and warning; the plan is nil
// if one of them is an error, except for an unknown file of the operator: then the plan can be
// shown, but must not be written.
func Read(files []render.File, o Options) (*Plan, problem.List) {
	observed, list := importer.Observe(files)
	if list.Err() != nil {
		return nil, list
	}
	export := Export(files)
	export.Release = observed.Release
	o.DisruptionPolicy = false
	own, known := export.OwnPolicy()
	if assets.AtLeast(observed.Release, "4.17") && !own {
		o.DisruptionPolicy = true
	}
	result, list := observed.Read(o.Given)
	list = append(list, complete(observed, export)...)
	if list.Err() != nil {
		list.Sort()
		return nil, list
	}
	cluster, err := load(result.InstallConfig, result.VIPConfig)
	if err != nil {
		return nil, append(list, problem.Problem{Severity: problem.Error, Code: problem.Syntax, Found: err.Error()})
	}
	p := &Plan{Cluster: result.Domain, Release: observed.Release, Import: result, observed: observed, cluster: cluster, export: export, options: o,
		Items: []Item{}, Accepted: []Unknown{}, Unknown: []Unknown{}, Replaced: []diff.Overlap{}, Shadowed: []diff.Overlap{}, Notes: []string{}}
	p.policyNotes(own, known)
	p.addressNotes()
	if err := p.plan(); err != nil {
		return nil, append(list, problem.Problem{Severity: problem.Error, Code: problem.Syntax, Found: err.Error()})
	}
	p.Images = images(export, observed, cluster)
	list = append(list, p.problems()...)
	list.Sort()
	return p, list
}

// plan compares the export with the contract, and counts roll-outs.
func (p *Plan) plan() error {
	p.migrated = p.afterMigration()
	if err := p.compareContract(); err != nil {
		return err
	}
	return p.rollOut()
}

// policyNotes adds a note where vipgen's node disruption policy is missing or may replace another.
func (p *Plan) policyNotes(own, known bool) {
	switch {
	case own:
		p.Notes = append(p.Notes, "the cluster has a node disruption policy of yours: vipgen writes none. Add the files of 'manifests.nodeDisruptionPolicy' to yours, or each change of VIPs reboots")
	case p.options.DisruptionPolicy && !known:
		p.Notes = append(p.Notes, "the export has no MachineConfiguration (oc get machineconfiguration.operator.openshift.io cluster): if it has a node disruption policy of yours, applying vipgen's replaces its lists")
	}
}

// DefaultAgent reports an image of the agent that nodes could not pull.
func (p *Plan) DefaultAgent() problem.List {
	list := render.DefaultAgent(p.cluster.Images, problem.Error)
	for i := range list {
		list[i].Expected += ", by --agent-image"
	}
	return list
}

func load(installConfig, vipConfig []byte) (*render.Cluster, error) {
	c, list, err := render.Load(sources(map[string][]byte{importer.InstallConfigName: installConfig, importer.VIPConfigName: vipConfig}), render.Options{})
	if err != nil {
		return nil, list.Err()
	}
	return c, nil
}

// Export returns the MachineConfigs and other objects of exported files, without node files.
func Export(files []render.File) *diff.Cluster {
	c := &diff.Cluster{}
	for _, f := range files {
		if slices.Contains([]string{".yaml", ".yml", ".json", ""}, path.Ext(f.Name)) {
			_ = c.Add(path.Base(f.Name), f.Data) // the importer has reported unreadable files
		}
	}
	return c
}

// complete reports what a plan needs and the export lacks.
func complete(o *importer.Observed, export *diff.Cluster) (list problem.List) {
	missing := func(found, expected, hint string) {
		list = append(list, problem.Problem{Severity: problem.Error, Code: problem.MissingField, Found: found, Expected: expected, Hint: hint})
	}
	if o.Release == "" {
		missing("no release of OpenShift", "the ClusterVersion", "'vipgen adopt --help' says what to export")
	} else if !slices.ContainsFunc(assets.Releases, func(r assets.Release) bool { return r.Version == o.Release }) {
		list = append(list, problem.Problem{Severity: problem.Error, Code: problem.UnsupportedVersion, Found: "OpenShift " + o.Release,
			Expected: assets.Releases[0].Version + " to " + assets.Releases[len(assets.Releases)-1].Version, Hint: "the operator contract does not know what this release lays on nodes"})
	}
	for _, role := range []string{v1alpha1.RoleMaster, v1alpha1.RoleWorker} {
		if len(export.OperatorItems(role)) == 0 {
			missing("no MachineConfig of the operator for the pool "+role, fmt.Sprintf("00-%s and 01-%s-*", role, role), "'oc get machineconfig -o yaml' exports all of them")
		}
	}
	return list
}

// problems returns the problems that prevent writing.
func (p *Plan) problems() (list problem.List) {
	for _, u := range p.Unknown {
		list = append(list, problem.Problem{Severity: problem.Error, Code: problem.UnknownOperatorFile, Field: u.Kind + " " + u.Name,
			Found: fmt.Sprintf("it in MachineConfig %s of the operator, which %s", u.From, u.Why), Expected: "files and units that the operator contract knows",
			Hint: "look what it does to VIPs, their daemons or DNS; --accept " + u.Name + " leaves it in place"})
	}
	for _, s := range p.Shadowed {
		list = append(list, problem.Problem{Severity: problem.Error, Code: problem.Shadowed, Field: s.Kind + " " + s.Name,
			Found:    fmt.Sprintf("it also in MachineConfig %s of %s, which the operator merges after %s (pool %s)", s.Other, s.Owner, s.Vipgen, s.Pool),
			Expected: "no MachineConfig after vipgen's with the same path",
			Hint:     "take it out of that MachineConfig; --accept " + s.Other + " keeps it"})
	}
	return list
}
