package adopt

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/ignition/diff"
	"github.com/vipgen/vipgen/internal/day2/importer"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/render"
)

// Names in the written directory.
const (
	StepsName = "STEPS.md"
	// OperatorDir holds the operator's files, as files/POOL/PATH, and the record.
	OperatorDir = "operator/"
	recordName  = OperatorDir + "adopted.yaml"
	// RenderedDir holds the files for the cluster.
	RenderedDir = "rendered/"
	canaryDir   = "canary/"
)

// record is the origin of a directory.
type record struct {
	// Release of OpenShift, as "4.18".
	Release string `json:"release"`
	// Accepted maps the names of --accept to digests.
	Accepted map[string]string `json:"accepted,omitempty"`
	// Shadows are the other names of --accept.
	Shadows []string `json:"shadows,omitempty"`
}

const recordHead = `# Made by 'vipgen adopt': the release whose operator laid down what is next to it, and
# what --accept named, with its digest. 'vipgen adopt --check' reads it.
`

// Files returns the files of the directory: input, rendered tree, the operator's files, the
// record and the steps.
func (p *Plan) Files() ([]render.OutputFile, error) {
	rendered, err := p.tree(p.cluster)
	if err != nil {
		return nil, err
	}
	out := lists.Map(rendered, func(f render.OutputFile) render.OutputFile {
		return render.OutputFile{Path: RenderedDir + f.Path, Data: f.Data}
	})
	canary, err := p.canaryFiles()
	if err != nil {
		return nil, err
	}
	operator, err := operatorFiles(p.export, conditions(p.observed), p.record())
	if err != nil {
		return nil, err
	}
	out = append(out,
		render.OutputFile{Path: importer.InstallConfigName, Data: p.Import.InstallConfig},
		render.OutputFile{Path: importer.VIPConfigName, Data: p.Import.VIPConfig},
		render.OutputFile{Path: StepsName, Data: []byte(p.Steps())})
	out = append(out, canary...)
	out = append(out, operator...)
	slices.SortFunc(out, func(a, b render.OutputFile) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

func (p *Plan) record() record {
	r := record{Release: p.Release, Accepted: map[string]string{}}
	for _, u := range p.Accepted {
		r.Accepted[u.Name] = digest(u.text)
	}
	r.Shadows = append(r.Shadows, lists.Filter(p.options.Accept, func(name string) bool { return r.Accepted[name] == "" })...)
	slices.Sort(r.Shadows)
	return r
}

// operatorFiles returns the operator's files on nodes, and the record.
func operatorFiles(export *diff.Cluster, words []string, r record) ([]render.OutputFile, error) {
	text, err := yaml.Marshal(r)
	if err != nil {
		return nil, err
	}
	out := []render.OutputFile{{Path: recordName, Data: append([]byte(recordHead), text...)}}
	for name, data := range operators(export, words, r.Release) {
		out = append(out, render.OutputFile{Path: OperatorDir + name, Data: data})
	}
	slices.SortFunc(out, func(a, b render.OutputFile) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// operators returns the operator's files and units in the contract, as files of a tree.
func operators(export *diff.Cluster, words []string, release string) map[string][]byte {
	out := map[string][]byte{}
	for _, pool := range export.Pools() {
		if !slices.Contains(roles, pool) {
			continue
		}
		rows := contract(words, pool, release)
		for _, item := range export.OperatorItems(pool) {
			if _, known := rows[item.Name]; !known {
				continue
			}
			name := item.Name
			if item.Kind != "file" {
				name = "/etc/systemd/system/" + item.Name
			}
			out[path.Join("files", pool, name)] = []byte(item.Text)
		}
	}
	return out
}

// canaryFiles returns the canary pool, and vipgen's worker files for it alone.
func (p *Plan) canaryFiles() ([]render.OutputFile, error) {
	name := p.options.Canary
	if name == "" {
		return nil, nil
	}
	bundles, err := p.cluster.Bundles()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(bundles, func(b ignition.Bundle) bool { return b.Role == v1alpha1.RoleWorker })
	if i < 0 {
		return nil, fmt.Errorf("no worker pool")
	}
	enc, err := p.cluster.Encoder()
	if err != nil {
		return nil, err
	}
	b := bundles[i]
	b.Role = name
	// It sorts after the worker's own, which it equals.
	meta := ignition.Metadata{Name: render.MachineConfigName(v1alpha1.RoleWorker) + "." + name, Annotations: map[string]string{"vipgen.io/cluster": p.cluster.Config.Metadata.Name}}
	config, err := enc.MachineConfig(b, meta)
	if err != nil {
		return nil, err
	}
	pool, err := yaml.Marshal(map[string]any{
		"apiVersion": "machineconfiguration.openshift.io/v1",
		"kind":       "MachineConfigPool",
		"metadata":   map[string]any{"name": name},
		"spec": map[string]any{
			"machineConfigSelector": map[string]any{"matchExpressions": []any{map[string]any{
				"key": "machineconfiguration.openshift.io/role", "operator": "In", "values": []string{v1alpha1.RoleWorker, name}}}},
			"nodeSelector": map[string]any{"matchLabels": map[string]any{v1alpha1.RoleLabel(name): ""}},
		},
	})
	if err != nil {
		return nil, err
	}
	return []render.OutputFile{{Path: canaryDir + "machineconfigpool.yaml", Data: pool}, {Path: canaryDir + meta.Name + ".yaml", Data: config}}, nil
}
