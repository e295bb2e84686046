package ignition

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"unicode/utf8"
)

const roleLabel = "machineconfiguration.openshift.io/role"

// Metadata is the part of a MachineConfig that is not Ignition.
type Metadata struct {
	// Name decides, within a pool, whose file of a path wins: the last.
	Name string
	// Labels get the role of the bundle unless they have one.
	Labels, Annotations map[string]string
}

// Encoder writes bundles for one target. Files and units go through the structs and the validation of
// Butane and Ignition.
type Encoder struct {
	target    Target
	ignition  string
	butane    string
	translate translation
}

// translated is an Ignition config by the digest of its target and bundle.
type translated struct {
	digest [sha256.Size]byte
	config json.RawMessage
}

// recent are the last translations of all encoders, the newest first: a command writes a bundle in
// several formats, and compares the same bundles before and after a change.
var recent struct {
	sync.Mutex
	list []translated
}

// maxRecent is the length of recent: a few clusters with three pools each.
const maxRecent = 16

// recall returns the recent translation with a digest; nil if there is none.
func recall(digest [sha256.Size]byte) json.RawMessage {
	recent.Lock()
	defer recent.Unlock()
	if i := slices.IndexFunc(recent.list, func(t translated) bool { return t.digest == digest }); i >= 0 {
		return recent.list[i].config
	}
	return nil
}

func remember(t translated) {
	recent.Lock()
	defer recent.Unlock()
	recent.list = slices.Insert(recent.list[:min(len(recent.list), maxRecent-1)], 0, t)
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
	raw, err := e.config(b)
	if err != nil {
		return nil, err
	}
	labels, err := meta.labels(b.Role)
	if err != nil {
		return nil, err
	}
	var config any
	if err := json.Unmarshal(raw, &config); err != nil {
		return nil, err
	}
	metadata := map[string]any{"name": text(meta.Name), "labels": textMap(labels)}
	if len(meta.Annotations) > 0 {
		metadata["annotations"] = textMap(meta.Annotations)
	}
	return marshalYAML(map[string]any{
		"apiVersion": "machineconfiguration.openshift.io/v1",
		"kind":       "MachineConfig",
		"metadata":   metadata,
		"spec":       map[string]any{"config": texts(config)},
	})
}

// Ignition writes a bundle as an Ignition config: JSON, indented, with a
// newline at the end.
func (e *Encoder) Ignition(b Bundle) ([]byte, error) {
	raw, err := e.config(b)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = json.Indent(&out, raw, "", "  ")
	out.WriteByte('\n')
	return out.Bytes(), err
}

// config translates a bundle to an Ignition config.
func (e *Encoder) config(b Bundle) (json.RawMessage, error) {
	if e.translate == nil {
		return nil, fmt.Errorf("unknown target %s", e.target)
	}
	b, err := ordered(b)
	if err != nil {
		return nil, err
	}
	if err := b.check(); err != nil {
		return nil, fmt.Errorf("pool %s: %w", b.Role, err)
	}
	key, err := json.Marshal([]any{e.target, b.Files, b.Units})
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(key)
	if config := recall(digest); config != nil {
		return config, nil
	}
	raw, err := e.translate(b.Files, b.Units)
	if err != nil {
		return nil, fmt.Errorf("pool %s: %w", b.Role, err)
	}
	remember(translated{digest, raw})
	return raw, nil
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

// check rejects text that JSON and YAML would change, and modes that older versions of Ignition
// ignore a part of.
func (b Bundle) check() error {
	for _, f := range b.Files {
		if f.Mode&^0o777 != 0 {
			return fmt.Errorf("file %s: mode %#o: special mode bits are not supported", f.Path, f.Mode)
		}
		if !utf8.ValidString(f.Path) {
			return fmt.Errorf("file %q: the path is not UTF-8", f.Path)
		}
	}
	for _, u := range b.Units {
		for _, d := range append([]Dropin{{u.Name, u.Contents}}, u.Dropins...) {
			if !utf8.ValidString(d.Name) || !utf8.ValidString(d.Contents) {
				return fmt.Errorf("unit %q: %q is not UTF-8", u.Name, d.Name)
			}
		}
	}
	return nil
}
