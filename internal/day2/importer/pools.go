package importer

import (
	"bytes"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/lazy"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/render"
	"github.com/vipgen/vipgen/render/source"
)

type configDoc struct {
	ignition.Document
	file string
}

// madeOf matches the name of a rendered MachineConfig, which has no label.
var madeOf = lazy.Regexp(`^rendered-(.+)-[0-9a-f]{8,64}$`)

func (d configDoc) pool() string {
	if m := madeOf().FindStringSubmatch(d.Name); m != nil {
		return m[1]
	}
	return d.Role
}

type machineConfigs struct {
	docs []configDoc
	// current maps pools to their rendered MachineConfig.
	current map[string]string
}

func (i *importer) readPool(m *machineConfigs, doc *source.Document) {
	var p configPool
	if !i.decode(doc, &p) || p.Metadata.Name == "" {
		return
	}
	name := p.Metadata.Name
	if m.current == nil {
		m.current = map[string]string{}
	}
	m.current[name] = p.Status.Configuration.Name
	at := position(doc, "status.machineCount")
	var counts *claims[int]
	switch name {
	case v1alpha1.RoleMaster:
		counts = &i.masters
	case v1alpha1.RoleArbiter:
		counts = &i.arbiters
	case v1alpha1.RoleWorker:
		counts = &i.workers
	default:
		if v1alpha1.ValidLabel(name) {
			i.pools.add(name, position(doc, "metadata.name"), byState)
		}
	}
	if counts != nil && p.Status.MachineCount != nil {
		counts.add(*p.Status.MachineCount, at, byState)
	}
}

// files returns the files of nodes, of each pool: those of the rendered MachineConfig if known,
// else of all, with the config that sorts last for each path.
func (m *machineConfigs) files(i *importer) []render.File {
	var out []render.File
	roles := lists.Map(m.docs, func(d configDoc) string { return d.pool() })
	slices.Sort(roles)
	return append(out, lists.FlatMap(slices.Compact(roles), func(role string) []render.File { return m.pool(i, role) })...)
}

func (m *machineConfigs) pool(i *importer, role string) []render.File {
	var plain, made []configDoc
	for _, d := range m.docs {
		switch {
		case d.pool() != role:
		case madeOf().MatchString(d.Name):
			made = append(made, d)
		default:
			plain = append(plain, d)
		}
	}
	for _, d := range made {
		if d.Name == m.current[role] {
			return m.relevant(i, []configDoc{d})
		}
	}
	if len(plain) > 0 {
		return m.relevant(i, plain)
	}
	var first []render.File
	for n, d := range made {
		files := m.relevant(i, []configDoc{d})
		if n > 0 && !sameContents(first, files) {
			i.add(problem.Problem{File: d.file, Code: problem.ConflictingFields, Field: "MachineConfig " + shown(d.Name),
				Found: "other contents than in " + shown(made[0].Name), Expected: "one rendered MachineConfig of the pool " + shown(role),
				Hint: "add the MachineConfigPools (oc get machineconfigpool -o yaml), which say which one is in use"})
		}
		if n == 0 {
			first = files
		}
	}
	return first
}

// relevant returns the files that are read, merged in the order of the names of configs.
func (m *machineConfigs) relevant(i *importer, docs []configDoc) []render.File {
	slices.SortStableFunc(docs, func(a, b configDoc) int { return strings.Compare(a.Name, b.Name) })
	byPath := map[string]render.File{}
	for _, d := range docs {
		for _, f := range d.Files {
			if !nodePath(f.Path) || f.Append {
				continue
			}
			name := d.file + "#" + shown(d.Name) + ":" + f.Path
			if f.Problem != "" {
				i.add(problem.Problem{File: name, Code: problem.Syntax, Found: "contents that cannot be decoded", Expected: "a data URL, compressed with gzip or not"})
				continue
			}
			byPath[f.Path] = render.File{Name: name, Data: f.Contents}
		}
	}
	return slices.SortedFunc(maps.Values(byPath), func(a, b render.File) int { return strings.Compare(a.Name, b.Name) })
}

func nodePath(p string) bool {
	_, base := path.Split(p)
	return texts[base] != nil || manifest(p) || p == v1alpha1.ClusterConfigPath
}

func sameContents(a, b []render.File) bool {
	return slices.EqualFunc(a, b, func(x, y render.File) bool {
		_, p, _ := strings.Cut(x.Name, ":")
		_, q, _ := strings.Cut(y.Name, ":")
		return p == q && bytes.Equal(x.Data, y.Data)
	})
}
