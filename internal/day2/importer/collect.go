package importer

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/lazy"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/render"
	"github.com/vipgen/vipgen/render/source"
)

// texts maps names of files to their readers.
var texts = map[string]func(*importer, string, []byte){
	"keepalived.conf": (*importer).readKeepalived, "keepalived.conf.tmpl": (*importer).readKeepalived,
	"monitor.conf": (*importer).readModeFile, "monitor-user.conf": (*importer).readModeFile,
}

// Relevant reports whether a file may hold anything to import: in a must-gather, the folders of
// the few objects that are read; in other directories, files of the known names and all YAML,
// JSON and Ignition.
func Relevant(name string) bool {
	if texts[path.Base(name)] != nil {
		return true
	}
	if !ignition.HoldsObjects(name) {
		return false
	}
	if rest, ok := cutFolder(name, "cluster-scoped-resources"); ok {
		group, rest, _ := strings.Cut(rest, "/")
		switch group {
		case "machineconfiguration.openshift.io", "config.openshift.io":
			return true
		case "operator.openshift.io": // the node disruption policy, and mirrors before 4.13
			return strings.HasPrefix(rest, "machineconfigurations") || strings.HasPrefix(rest, "imagecontentsourcepolicies")
		}
		return group == "core" && strings.HasPrefix(rest, "nodes")
	}
	if rest, ok := cutFolder(name, "namespaces"); ok {
		namespace, rest, _ := strings.Cut(rest, "/")
		switch {
		case infraNamespace().MatchString(namespace):
			return true
		case namespace == "kube-system":
			return strings.HasPrefix(rest, "core/configmaps")
		}
		return strings.HasPrefix(rest, "metallb.io/")
	}
	return true
}

func cutFolder(name, folder string) (after string, ok bool) {
	parts := strings.Split(name, "/")
	n := slices.Index(parts, folder)
	if n < 0 || n == len(parts)-1 {
		return "", false
	}
	return path.Join(parts[n+1:]...), true
}

// file is a file of the source.
type file struct {
	render.File
	parse func() ([]*source.Document, problem.List)
}

func newFiles(files []render.File) []*file {
	return lists.Map(files, func(f render.File) *file {
		return &file{f, sync.OnceValues(func() ([]*source.Document, problem.List) { return source.ParseAll(f.Name, f.Data) })}
	})
}

func (i *importer) collect(files []*file) {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b *file) int { return strings.Compare(a.Name, b.Name) })
	var m machineConfigs
	for _, f := range files {
		if path.Base(f.Name) == path.Base(v1alpha1.ClusterConfigPath) && bytes.Contains(f.Data, []byte("kind: ClusterConfig")) {
			i.vipgens(f.Name)
			continue
		}
		if take := texts[path.Base(f.Name)]; take != nil {
			take(i, f.Name, f.Data)
			continue
		}
		i.objects(&m, f)
	}
	for _, f := range m.files(i) {
		i.nodeFile(f.Name, f.Data)
	}
	i.countNodes()
}

// vipgens rejects a file that vipgen itself has written.
func (i *importer) vipgens(file string) {
	i.found = true
	i.add(problem.Problem{File: file, Line: 1, Code: problem.WrongKind, Found: "configuration that vipgen has rendered",
		Expected: "a cluster that OpenShift's own keepalived serves", Hint: "render from the input that this was rendered from"})
}

// interesting matches kinds by which a file counts even if it is unreadable.
var interesting = lazy.Regexp(`"?kind"?: *"?(?:MachineConfig|ControllerConfig|Infrastructure|Pod|DNS|ClusterVersion|Node|MachineConfigPool|BGPPeer)\b`)

func (i *importer) objects(m *machineConfigs, f *file) {
	docs, list := f.parse()
	if err := list.Err(); err != nil {
		if !interesting().Match(f.Data) && path.Ext(f.Name) != ".ign" {
			for n := range list {
				list[n].Severity = problem.Warning
			}
		}
		i.list = append(i.list, list...)
		return
	}
	for _, doc := range docs {
		var h header
		if list := doc.Decode(&h).Errors(); len(list) > 0 {
			if kinds[h.Kind] != nil || interesting().MatchString("kind: "+h.Kind) {
				i.list = append(i.list, list...)
			}
			continue
		}
		disabled := strings.Contains(f.Name, "disabled-manifests/")
		switch {
		case h.Kind == "MachineConfig", h.Kind == "" && doc.Has("ignition.version"):
			i.decodeConfig(m, f.Name, doc)
		case h.Kind == "MachineConfigPool":
			i.readPool(m, doc)
		case h.Kind == "Pod":
			i.readPod(doc, disabled)
		case kinds[h.Kind] != nil:
			kinds[h.Kind](i, doc, h)
		}
	}
}

func (i *importer) decodeConfig(m *machineConfigs, file string, doc *source.Document) {
	data, err := doc.JSON()
	var decoded []ignition.Document
	if err == nil {
		decoded, err = i.configs.Decode(path.Base(file), data)
	}
	if err != nil {
		i.add(problem.Problem{File: file, Line: position(doc, "metadata.name").Line, Code: problem.Syntax, Found: "a config that cannot be decoded", Expected: "a MachineConfig or an Ignition config of version 2 or 3", Hint: "'vipgen inspect' says why"})
		return
	}
	m.docs = append(m.docs, lists.Map(decoded, func(d ignition.Document) configDoc { return configDoc{d, file} })...)
}

func (i *importer) nodeFile(name string, data []byte) {
	base := path.Base(name)
	switch {
	case base == path.Base(v1alpha1.ClusterConfigPath) && strings.Contains(name, "static-pod-resources/vipgen/"):
		i.vipgens(name)
	case texts[base] != nil:
		texts[base](i, name, data)
	case manifest(name) && !templated(data):
		docs, list := source.ParseAll(name, data)
		i.list = append(i.list, list...)
		for _, doc := range docs {
			var h header
			if doc.Decode(&h).Err() == nil && h.Kind == "Pod" {
				i.readPod(doc, strings.Contains(name, "disabled-manifests/"))
			}
		}
	}
}

func manifest(name string) bool {
	return strings.Contains(name, "manifests/") && isKeepalivedPod(strings.TrimSuffix(path.Base(name), path.Ext(name)))
}

// templated reports whether a manifest is a template, unlike any on a node.
func templated(data []byte) bool { return bytes.Contains(data, []byte("{{ .")) }

func (i *importer) readKeepalived(name string, data []byte) {
	if bytes.Contains(data, []byte("by vipgen-agent")) {
		i.vipgens(name)
		return
	}
	i.found = true
	k, list := parseKeepalived(name, data)
	i.list = append(i.list, list...)
	if list.Err() == nil {
		k.claim(&i.evidence)
	}
}

// readModeFile reads the file of a completed or planned migration.
func (i *importer) readModeFile(name string, data []byte) {
	doc, list := source.Parse(name, data)
	i.list = append(i.list, list...)
	if doc == nil {
		return
	}
	var m struct {
		Mode v1alpha1.Mode `json:"mode"`
	}
	if !i.decode(doc, &m) {
		return
	}
	at := position(doc, "mode")
	switch m.Mode {
	case "":
	case v1alpha1.ModeUnicast, v1alpha1.ModeMulticast:
		i.mode.add(m.Mode, at, byManifest)
	default:
		i.add(problem.Problem{File: name, Line: at.Line, Code: problem.BadValue, Field: "mode", Found: "something else", Expected: "unicast or multicast"})
	}
}
