package diff

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/ignition"
)

// Kinds of changes.
const (
	kindFile    = "file"
	kindUnit    = "unit"
	kindSetting = "setting"
	kindObject  = "object"
	kindText    = "text"
)

// Change is a difference.
type Change struct {
	// Kind is file, unit, setting (of a MachineConfig), object (a manifest) or text (a file
	// outside of both).
	Kind string `json:"kind"`
	Name string `json:"name"`
	// What is added, removed, changed or rewritten.
	What string `json:"what"`
	// From is the MachineConfig that has it, on the second side unless removed.
	From string `json:"from,omitempty"`
	// Fields are the differences by field or block, Lines by line; both are empty for what is
	// added or removed.
	Fields []Field `json:"fields,omitempty"`
	Lines  string  `json:"lines,omitempty"`
}

const (
	added   = "added"
	removed = "removed"
	changed = "changed"
)

// Pool holds the changes on the nodes of a pool.
type Pool struct {
	Name    string   `json:"name"`
	Effect  Effect   `json:"effect"`
	Reasons []Reason `json:"reasons,omitempty"`
	// Without is the effect while the second side's new node disruption policy is not in force
	// yet; nil where that makes no difference.
	Without *Effect  `json:"withoutNewPolicy,omitempty"`
	Changes []Change `json:"changes,omitempty"`
}

// Result is the difference between two sides of a cluster.
type Result struct {
	Cluster string `json:"cluster"`
	Pools   []Pool `json:"pools,omitempty"`
	// Hosts are Ignition configs, which apply when a node is installed.
	Hosts     []Pool   `json:"hosts,omitempty"`
	Manifests []Change `json:"manifests,omitempty"`
	Texts     []Change `json:"texts,omitempty"`
	// Clients are changes of VIPs and VRRP with their impact on clients.
	Clients []Impact `json:"clients,omitempty"`
	// Replaces are other owners' files that vipgen's replace; Shadowed are vipgen's that others
	// replace.
	Replaces []Overlap `json:"replaces,omitempty"`
	Shadowed []Overlap `json:"shadowed,omitempty"`
}

// Empty reports whether there is no difference.
func (r Result) Empty() bool {
	return len(r.Pools)+len(r.Hosts)+len(r.Manifests)+len(r.Texts) == 0
}

// Compare returns the changes from a to b.
//
// Where one side has MachineConfigs that are not vipgen's and the other has vipgen's alone, the
// first was exported from a cluster and the second is rendered: then what is not vipgen's
// counts as unchanged.
func Compare(a, b *Cluster) Result {
	var r Result
	left, right := a.configs, b.configs
	fa, fb := a.foreign(), b.foreign()
	exportA := len(fa) > 0 && len(fb) == 0 && len(b.configs) > 0
	exportB := len(fb) > 0 && len(fa) == 0 && len(a.configs) > 0
	switch {
	case exportA:
		right = append(slices.Clone(right), fa...)
	case exportB:
		left = append(slices.Clone(left), fb...)
	}
	release := cmp.Or(b.Release, a.Release)
	r.pools(left, right, a, b, release)
	for _, pool := range pools(right) {
		r.overlaps(pool, right, orders(release))
	}
	if exportA && len(a.hosts)+len(a.objects) == 0 || exportB && len(b.hosts)+len(b.objects) == 0 {
		return r // an export of MachineConfigs alone
	}
	r.hosts(a, b)
	r.Manifests = compareObjects(a.objects, b.objects)
	r.Texts = compareTexts(a.texts, b.texts)
	return r
}

func (r *Result) pools(left, right []ignition.Document, a, b *Cluster, release string) {
	old, _ := a.policy(release)
	policy, given := b.policy(release)
	if !given {
		policy = old
	}
	for _, name := range pools(left, right) {
		before, after := inPool(left, name, orders(release)[0]), inPool(right, name, orders(release)[0])
		was, is := merge(before), merge(after)
		changes := compareStates(was, is)
		if old, now := specs(was, is); old != nil && now != nil && r.Clients == nil {
			r.Clients = clientImpacts(old, now)
		}
		changes = append(changes, compareSpelling(was, is, release, changes)...)
		changes = append(changes, compareOrder(was, is, release)...)
		if was, is := version(before), version(after); was != is && was != "" && is != "" {
			changes = append(changes, Change{Kind: kindSetting, Name: settingVersion, What: changed, Fields: []Field{{Path: settingVersion, Old: was, New: is}}})
		}
		p := Pool{Name: name, Changes: changes}
		p.Effect, p.Reasons = policy.outcome(changes)
		if without, _ := old.outcome(changes); without != p.Effect {
			p.Without = &without
		}
		if len(changes) > 0 {
			r.Pools = append(r.Pools, p)
		}
	}
}

// settingVersion is the Ignition version of vipgen's MachineConfigs. The operator translates
// it, so that it changes nothing on nodes.
const settingVersion = "ignition.version"

func version(docs []ignition.Document) string {
	newest := ""
	for _, d := range docs {
		if owner(d) == ownVipgen {
			newest = max(newest, d.IgnitionVersion) // all of them are 3.x.0
		}
	}
	return newest
}

// hosts compares Ignition configs by pool. Those of a pool whose MachineConfigs change in the
// same way, as in output of vipgen, are left out.
func (r *Result) hosts(a, b *Cluster) {
	name := func(d ignition.Document) string {
		return cmp.Or(d.Role, d.Name)
	}
	var names []string
	left, right := map[string][]ignition.Document{}, map[string][]ignition.Document{}
	for _, side := range []struct {
		docs []ignition.Document
		into map[string][]ignition.Document
	}{{a.hosts, left}, {b.hosts, right}} {
		for _, d := range side.docs {
			side.into[name(d)] = append(side.into[name(d)], d)
			names = append(names, name(d))
		}
	}
	slices.Sort(names)
	for _, n := range slices.Compact(names) {
		changes := compareStates(merge(left[n]), merge(right[n]))
		if len(changes) > 0 && !r.sameAsPool(n, changes) {
			r.Hosts = append(r.Hosts, Pool{Name: n, Changes: changes})
		}
	}
}

func (r *Result) sameAsPool(pool string, changes []Change) bool {
	i := slices.IndexFunc(r.Pools, func(p Pool) bool { return p.Name == pool })
	if i < 0 {
		return false
	}
	said := slices.DeleteFunc(slices.Clone(r.Pools[i].Changes), func(c Change) bool { return c.Name == settingVersion })
	return slices.EqualFunc(said, changes, func(x, y Change) bool {
		return x.Kind == y.Kind && x.Name == y.Name && x.What == y.What && x.Lines == y.Lines && slices.Equal(x.Fields, y.Fields)
	})
}

// compareMaps returns the changes of a kind, by name. differs completes a change, and reports
// whether it is one.
func compareMaps[V any](kind string, a, b map[string]V, differs func(c *Change, before, after V) bool) (out []Change) {
	for _, name := range keys(a, b) {
		before, was := a[name]
		after, is := b[name]
		if c := (Change{Kind: kind, Name: name, What: changeKind(was, is)}); differs(&c, before, after) {
			out = append(out, c)
		}
	}
	return out
}

func compareStates(a, b nodeState) []Change {
	files := compareMaps(kindFile, a.files, b.files, func(c *Change, before, after nodeFile) bool {
		if c.From = cmp.Or(after.from, before.from); c.What != changed {
			return true
		}
		if about, now := before.attributes(), after.attributes(); about != now {
			c.Fields = append(c.Fields, Field{Path: "file", Old: about, New: now})
		}
		switch {
		case string(before.Contents) == string(after.Contents):
		case before.ownerOnly() || after.ownerOnly():
			c.hidden(ownerOnly)
		default:
			c.contents(c.Name, string(before.Contents), string(after.Contents))
		}
		return len(c.Fields) > 0 || c.Lines != ""
	})
	units := compareMaps(kindUnit, a.units, b.units, func(c *Change, before, after nodeUnit) bool {
		if c.From = cmp.Or(after.from, before.from); c.What == changed {
			c.Lines = unified(before.text(), after.text())
		}
		return c.What != changed || before.text() != after.text()
	})
	settings := compareMaps(kindSetting, a.settings, b.settings, func(c *Change, before, after string) bool {
		if showable(c.Name) {
			c.Fields = []Field{{Path: c.Name, Old: before, New: after}}
		}
		return before != after
	})
	return slices.Concat(files, units, settings)
}

// showable reports whether the value of a setting may be shown: others are digests of possible
// secrets.
func showable(name string) bool {
	switch name {
	case ignition.SettingKernelArguments, ignition.SettingExtensions, ignition.SettingFIPS, ignition.SettingKernelType,
		ignition.SettingOSImage, ignition.SettingExtensionsImage, ignition.SettingMasks:
		return true
	}
	return false
}

func changeKind(was, is bool) string {
	switch {
	case !was:
		return added
	case !is:
		return removed
	}
	return changed
}

func keys[V any](a, b map[string]V) []string {
	all := slices.Concat(slices.Collect(maps.Keys(a)), slices.Collect(maps.Keys(b)))
	slices.Sort(all)
	return slices.Compact(all)
}

func compareObjects(a, b []object) []Change {
	index := func(list []object) map[string]object {
		out := map[string]object{}
		for _, o := range list {
			out[o.String()] = o
		}
		return out
	}
	return compareMaps(kindObject, index(a), index(b), func(c *Change, before, after object) bool {
		if c.What == changed {
			c.Fields = compareObject(before.raw, after.raw)
		}
		return c.What != changed || len(c.Fields) > 0
	})
}

func compareTexts(a, b map[string]text) []Change {
	return compareMaps(kindText, a, b, func(c *Change, before, after text) bool {
		pool, file, _ := strings.Cut(c.Name, " ")
		if c.Name = file; pool != "" {
			c.From = "pool " + pool
		}
		if c.What == changed && before != after {
			c.contents(file, before.contents, after.contents)
		}
		return c.What != changed || before != after
	})
}
