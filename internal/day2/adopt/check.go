package adopt

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/ignition/diff"
	"github.com/vipgen/vipgen/internal/day2/importer"
	"github.com/vipgen/vipgen/internal/yamllimit"
	"github.com/vipgen/vipgen/render"
)

// Check holds the changes since a cluster was adopted.
type Check struct {
	Cluster string `json:"cluster"`
	// Was is the release of the directory, Is that of the export.
	Was string `json:"was"`
	Is  string `json:"is"`
	// Changes are the operator's files and units in the contract that differ from the
	// directory's.
	Changes []diff.Change `json:"changes"`
	// Unknown lists the operator's files and units that the contract lacks, or that were
	// accepted and changed.
	Unknown []Unknown `json:"unknown"`
	// Shadowed are vipgen's files that other MachineConfigs replace.
	Shadowed []diff.Overlap `json:"shadowed"`
	// Images are images of vipgen.yaml that differ from the cluster's release.
	Images []ImageChange `json:"images"`
	// Next holds the changes in another release; nil unless requested.
	Next *Next `json:"next,omitempty"`

	record   record
	export   *diff.Cluster
	observed *importer.Observed
}

// ImageChange is an image that is no longer the release's.
type ImageChange struct {
	Name string `json:"name"`
	Was  string `json:"was"`
	Is   string `json:"is"`
}

// Next holds the changes in another OpenShift release.
type Next struct {
	Release string `json:"release"`
	// News lists what the releases up to it introduce.
	News []string `json:"news"`
	// Rows are the differences in the contract.
	Rows []RowChange `json:"contract"`
	// Daemons names the versions of HAProxy and keepalived in its images.
	Daemons string `json:"daemons"`
	// Pools are the changes on nodes when rendered for that release.
	Pools []diff.Pool `json:"pools"`
}

// RowChange is a file or unit with another treatment.
type RowChange struct {
	Name string `json:"name"`
	Pool string `json:"pool"`
	// Was and Is are treatments; "" where the contract has none.
	Was assets.Treatment `json:"was,omitempty"`
	Is  assets.Treatment `json:"is,omitempty"`
	Why string           `json:"why,omitempty"`
}

// Findings returns the number of changes.
func (c *Check) Findings() int {
	n := len(c.Changes) + len(c.Unknown) + len(c.Shadowed) + len(c.Images)
	if c.Was != c.Is {
		n++
	}
	if c.Next != nil {
		n += len(c.Next.Rows) + len(c.Next.Pools)
	}
	return n
}

// Since compares an export with the directory written by Files, whose files have their names in
// it. With a release it also returns what that one changes.
func Since(dir, later []render.File, release string) (*Check, problem.List) {
	byName := map[string][]byte{}
	for _, f := range dir {
		byName[f.Name] = f.Data
	}
	var record record
	observed, list := importer.Observe(later)
	if err := yamllimit.UnmarshalStrict(byName[recordName], &record); err != nil || record.Release == "" {
		list = append(list, problem.Problem{File: recordName, Severity: problem.Error, Code: problem.MissingField, Found: "no record of an adopted cluster", Expected: "a directory that 'vipgen adopt --dir' wrote"})
	}
	cluster, err := load(byName[importer.InstallConfigName], byName[importer.VIPConfigName])
	if err != nil {
		list = append(list, problem.Problem{File: importer.VIPConfigName, Severity: problem.Error, Code: problem.Syntax, Found: "input that cannot be rendered", Expected: "what 'vipgen validate' accepts"})
	}
	export := Export(later)
	export.Release = observed.Release
	list = append(list, complete(observed, export)...)
	if list.Err() != nil {
		list.Sort()
		return nil, list
	}
	c := &Check{Cluster: cluster.Config.Spec.Domain, Was: record.Release, Is: observed.Release, Changes: []diff.Change{}, Unknown: []Unknown{}, Shadowed: []diff.Overlap{}, Images: []ImageChange{},
		record: record, export: export, observed: observed}
	c.compare(byName, export, observed)
	c.unknown(export, observed, record)
	c.shadows(byName, export, record)
	c.images(cluster, observed)
	if release != "" {
		if c.Next, err = next(byName, observed, release); err != nil {
			return nil, append(list, problem.Problem{Severity: problem.Error, Code: problem.NeedsVersion, Found: err.Error(), Expected: "input that OpenShift " + release + " can have"})
		}
	}
	return c, list.Warnings()
}

// Update returns the directory's OperatorDir for an export after an update of OpenShift: the
// operator's current files, and the record with what is accepted. An unknown file that is not
// accepted is an error.
func Update(dir, later []render.File, accept []string) ([]render.OutputFile, problem.List) {
	c, list := Since(dir, later, "")
	if c == nil {
		return nil, list
	}
	p := &Plan{options: Options{Accept: accept}}
	for _, u := range c.Unknown {
		if slices.Contains(accept, u.Name) {
			p.Accepted = append(p.Accepted, u)
		} else {
			p.Unknown = append(p.Unknown, u)
		}
	}
	if list = append(list, p.problems()...); list.Err() != nil {
		return nil, list
	}
	p.Release = c.Is
	record := p.record()
	for name, sum := range c.record.Accepted {
		if record.Accepted[name] == "" {
			record.Accepted[name] = sum
		}
	}
	record.Shadows = append(record.Shadows, c.record.Shadows...)
	slices.Sort(record.Shadows)
	record.Shadows = slices.Compact(record.Shadows)
	out, err := operatorFiles(c.export, conditions(c.observed), record)
	if err != nil {
		return nil, append(list, problem.Problem{Severity: problem.Error, Code: problem.Syntax, Found: err.Error()})
	}
	return out, list
}

func (c *Check) compare(dir map[string][]byte, export *diff.Cluster, o *importer.Observed) {
	was, is := &diff.Cluster{}, &diff.Cluster{}
	for name, data := range dir {
		if rest, ok := strings.CutPrefix(name, OperatorDir); ok {
			_ = was.Add(rest, data) // text
		}
	}
	for name, data := range operators(export, conditions(o), c.Is) {
		_ = is.Add(name, data)
	}
	c.Changes = append(c.Changes, diff.Compare(was, is).Texts...)
}

func (c *Check) unknown(export *diff.Cluster, o *importer.Observed, record record) {
	seen := map[string]bool{}
	for _, pool := range export.Pools() {
		list, _ := unknowns(export, conditions(o), pool, c.Is)
		for _, u := range list {
			accepted, ok := record.Accepted[u.Name]
			switch {
			case seen[u.Name] || ok && accepted == digest(u.text):
				continue
			case ok:
				u.Why = "was accepted with other contents"
			}
			seen[u.Name] = true
			c.Unknown = append(c.Unknown, u)
		}
	}
}

// shadows adds the directory's files of vipgen that do not reach nodes.
func (c *Check) shadows(dir map[string][]byte, export *diff.Cluster, record record) {
	rendered := &diff.Cluster{}
	for name, data := range dir {
		if rest, ok := strings.CutPrefix(name, RenderedDir); ok {
			_ = rendered.Add(rest, data)
		}
	}
	for _, o := range diff.Compare(export, rendered).Shadowed {
		if !slices.Contains(record.Shadows, o.Name) && !slices.Contains(record.Shadows, o.Other) {
			c.Shadowed = append(c.Shadowed, o)
		}
	}
}

func (c *Check) images(cluster *render.Cluster, o *importer.Observed) {
	have := render.ImageList(cluster.Images)
	for i, image := range render.ImageList(o.Images) {
		if image[1] != "" && image[1] != have[i][1] {
			c.Images = append(c.Images, ImageChange{image[0], have[i][1], image[1]})
		}
	}
}

// next returns what a release changes, compared with the export's.
func next(dir map[string][]byte, o *importer.Observed, release string) (*Next, error) {
	n := &Next{Release: release, News: []string{}, Rows: []RowChange{}, Pools: []diff.Pool{}}
	for _, r := range assets.Releases {
		if assets.AtLeast(r.Version, o.Release) && r.Version != o.Release && assets.AtLeast(release, r.Version) && r.New != "" {
			n.News = append(n.News, r.Version+": "+r.New)
		}
		if r.Version == release {
			n.Daemons = "HAProxy " + r.HAProxy + ", keepalived " + r.Keepalived
		}
	}
	said := conditions(o)
	for _, pool := range roles {
		if pool == v1alpha1.RoleArbiter && !slices.Contains(said, "arbiter") {
			continue
		}
		was, is := contract(said, pool, o.Release), contract(said, pool, release)
		names := slices.Concat(slices.Collect(maps.Keys(was)), slices.Collect(maps.Keys(is)))
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			if was[name].Treatment != is[name].Treatment {
				n.Rows = append(n.Rows, RowChange{name, pool, was[name].Treatment, is[name].Treatment, is[name].Why})
			}
		}
	}
	var sides [2]*diff.Cluster
	for i, version := range []string{o.Release, release} {
		c, list, err := render.Load(sources(dir), render.Options{OpenShiftVersion: version})
		if err != nil {
			return nil, fmt.Errorf("%s", list.Errors()[0])
		}
		files, err := c.Tree(render.Want{Formats: []render.Format{render.FormatMachineConfig}})
		if err != nil {
			return nil, err
		}
		sides[i] = output(files)
	}
	n.Pools = append(n.Pools, diff.Compare(sides[0], sides[1]).Pools...)
	return n, nil
}

func sources(dir map[string][]byte) render.Sources {
	return render.Sources{
		InstallConfig: render.File{Name: importer.InstallConfigName, Data: dir[importer.InstallConfigName]},
		VIPConfig:     &render.File{Name: importer.VIPConfigName, Data: dir[importer.VIPConfigName]},
	}
}

// Wanted reports whether Since reads a file of a directory, by its name in it.
func Wanted(name string) bool {
	switch path.Clean(name) {
	case importer.InstallConfigName, importer.VIPConfigName:
		return true
	}
	return strings.HasPrefix(name, OperatorDir) || strings.HasPrefix(name, RenderedDir+"machineconfigs/")
}
