package ignition

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

const roleLabel = "machineconfiguration.openshift.io/role"

// Metadata is the part of a MachineConfig that is not Ignition.
type Metadata struct {
	// Name decides, within a pool, whose file of a path wins: the last.
	Name string
	// Labels get the role of the bundle unless they have one.
	Labels, Annotations map[string]string
}

// Encoder writes bundles for one target. It is safe for concurrent use, and meant to be kept:
// parts that earlier bundles had cost next to nothing.
//
// Every unit, and every file with the exception of its contents (see parts), goes through
// Butane's structs, and with that through Butane's and Ignition's own validation, once; the
// documents are assembled from the results. That leaves the rules of Ignition that concern two
// parts: no path and no name twice (see Bundle.Sort), and no file where a unit is written.
// Those are checked for every bundle, so that each document is as valid as if all of it had
// been translated at once.
type Encoder struct {
	target    Target
	ignition  string
	butane    string
	translate translation

	frames cache[frameKey, frame]
	urls   cache[string, string]
	units  cache[unitKey, fragment]
}

// NewEncoder returns an encoder. With a Target that ParseTarget did not return, all of its
// methods return an error.
func NewEncoder(t Target) *Encoder {
	for _, s := range supported {
		if s.Target == t {
			return &Encoder{target: t, ignition: s.ignition, butane: s.butane, translate: s.translate}
		}
	}
	return &Encoder{target: t}
}

// IgnitionVersion returns the version of the Ignition configs that the encoder writes, such as
// "3.2.0".
func (e *Encoder) IgnitionVersion() string { return e.ignition }

// MachineConfig writes a bundle as one YAML document, for OpenShift targets only, with
// annotations, which Butane does not support.
func (e *Encoder) MachineConfig(b Bundle, meta Metadata) ([]byte, error) {
	if e.target.Variant != OpenShift {
		return nil, fmt.Errorf("a MachineConfig is for OpenShift, not for %s", e.target)
	}
	p, err := e.parts(b)
	if err != nil {
		return nil, err
	}
	head, err := machineConfigHead(meta, b.Role, e.ignition)
	if err != nil {
		return nil, err
	}
	return p.yaml(head), nil
}

// Ignition writes a bundle as an Ignition config: JSON, indented, with a
// newline at the end.
func (e *Encoder) Ignition(b Bundle) ([]byte, error) {
	p, err := e.parts(b)
	if err != nil {
		return nil, err
	}
	return p.json(e.ignition), nil
}

// machineConfigHead returns a MachineConfig up to its files and units.
func machineConfigHead(meta Metadata, role, version string) (string, error) {
	labels, err := meta.labels(role)
	if err != nil {
		return "", err
	}
	metadata := map[string]any{"name": text(meta.Name), "labels": textMap(labels)}
	if len(meta.Annotations) > 0 {
		metadata["annotations"] = textMap(meta.Annotations)
	}
	return marshalYAML(map[string]any{
		"apiVersion": "machineconfiguration.openshift.io/v1",
		"kind":       "MachineConfig",
		"metadata":   metadata,
		"spec":       map[string]any{"config": map[string]any{"ignition": map[string]any{"version": version}}},
	})
}

// labels returns the given labels with the role of the pool. It checks metadata as Butane does:
// a name and a role are required.
func (m Metadata) labels(role string) (map[string]string, error) {
	labels := map[string]string{roleLabel: role}
	maps.Copy(labels, m.Labels)
	if m.Name == "" || labels[roleLabel] == "" {
		return nil, errors.New("a MachineConfig needs a name and a role")
	}
	return labels, nil
}

func (p parts) yaml(head string) []byte {
	size := len(head) + 64
	for i, f := range p.files {
		size += len(f.before.yaml) + len(p.urls[i]) + len(f.after.yaml)
	}
	for _, u := range p.units {
		size += len(u.yaml)
	}
	out := append(make([]byte, 0, size), head...)
	if len(p.files) > 0 {
		out = append(out, "    storage:\n      files:\n"...)
	}
	for i, f := range p.files {
		out = append(append(append(out, f.before.yaml...), p.urls[i]...), f.after.yaml...)
	}
	if len(p.units) > 0 {
		out = append(out, "    systemd:\n      units:\n"...)
	}
	for _, u := range p.units {
		out = append(out, u.yaml...)
	}
	return out
}

func (p parts) json(version string) []byte {
	size := len(version) + 256
	for i, f := range p.files {
		size += len(f.before.json) + len(p.urls[i]) + len(f.after.json) + 2
	}
	for _, u := range p.units {
		size += len(u.json) + 2
	}
	out := append(make([]byte, 0, size), "{\n  \"ignition\": {\n    \"version\": \""+version+"\"\n  }"...)
	if len(p.files) > 0 {
		out = append(out, ",\n  \"storage\": {\n    \"files\": [\n"...)
		for i, f := range p.files {
			out = append(append(append(comma(out, i), f.before.json...), p.urls[i]...), f.after.json...)
		}
		out = append(out, "\n    ]\n  }"...)
	}
	if len(p.units) > 0 {
		out = append(out, ",\n  \"systemd\": {\n    \"units\": [\n"...)
		for i, u := range p.units {
			out = append(comma(out, i), u.json...)
		}
		out = append(out, "\n    ]\n  }"...)
	}
	return append(out, "\n}\n"...)
}

func comma(out []byte, i int) []byte {
	if i == 0 {
		return out
	}
	return append(out, ",\n"...)
}

// ordered returns a sorted copy of the bundle that passed the checks across its parts.
func ordered(b Bundle) (Bundle, error) {
	b.Files, b.Units = slices.Clone(b.Files), slices.Clone(b.Units)
	if err := b.Sort(); err != nil {
		return Bundle{}, err
	}
	const unitDir = "/etc/systemd/system/"
	written := map[string]bool{}
	for _, u := range b.Units {
		written[unitDir+u.Name] = u.Contents != ""
		for _, d := range u.Dropins {
			written[unitDir+u.Name+".d/"+d.Name] = d.Contents != ""
		}
	}
	for _, f := range b.Files {
		if written[f.Path] {
			return Bundle{}, fmt.Errorf("pool %s: %s is both a file and a unit", b.Role, f.Path)
		}
	}
	return b, nil
}
