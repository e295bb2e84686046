package ignition

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	ignition "github.com/coreos/ignition/v2/config"
)

// Conflict is a difference between base and bundle.
type Conflict struct {
	// Kind is file, directory, link, unit or dropin; Name is the path, the
	// name of the unit, or "unit/dropin".
	Kind, Name string
	// Detail describes the difference, without contents.
	Detail string
}

// Merge adds a bundle to an Ignition 3 config, such as the bootstrap.ign or the pointer config
// master.ign of an installer.
//
// Everything in the base stays as it is written, unknown fields too; its Ignition version stays
// as well, since every 3.x has the fields that a bundle needs. A file or unit that is the same
// in the base is left alone, so that merging twice gives the same bytes as merging once. A unit
// of the base gets missing contents, enablement and drop-ins. A difference is a conflict:
// merged is nil then, unless overwrite replaces it, in which case conflicts lists what was
// replaced.
//
// The error is for a base or a result that Ignition's own parser rejects.
func Merge(base []byte, b Bundle, enc *Encoder, overwrite bool) (merged []byte, conflicts []Conflict, err error) {
	if err := checkBase(base); err != nil {
		return nil, nil, err
	}
	b, err = ordered(b)
	if err != nil {
		return nil, nil, err
	}
	m := merger{decoder: decoder{all: new(Decoder)}}
	if err := m.encode(b, enc); err != nil {
		return nil, nil, err
	}
	merged, err = m.config(base, b)
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("base config: %w", err)
	case len(m.conflicts) > 0 && !overwrite:
		return nil, m.conflicts, nil
	case !m.changed:
		return bytes.Clone(base), nil, nil
	}
	if err := validate(merged); err != nil {
		return nil, nil, fmt.Errorf("the merged config would not be valid: %w", err)
	}
	return merged, m.conflicts, nil
}

func checkBase(base []byte) error {
	var c struct {
		Ignition struct {
			Version string `json:"version"`
		} `json:"ignition"`
	}
	if err := json.Unmarshal(base, &c); err != nil {
		return fmt.Errorf("base config: not JSON of an Ignition config: %w", err)
	}
	if v := c.Ignition.Version; !strings.HasPrefix(v, "3.") {
		return fmt.Errorf("base config: Ignition version %q: only 3.x can be merged (OpenShift 4.6 and later)", v)
	}
	if err := validate(base); err != nil {
		return fmt.Errorf("base config: %w", err)
	}
	return nil
}

// validate runs Ignition's validation. Warnings pass: the base may have its own.
func validate(config []byte) error {
	_, r, err := ignition.Parse(config)
	if err == nil {
		return nil
	}
	lines := []string{err.Error()}
	for _, e := range r.Entries {
		if e.Kind.IsFatal() {
			lines = append(lines, e.String())
		}
	}
	return errors.New(strings.Join(lines, "\n"))
}

// merger works on JSON, not on the structs of a version, which would drop unknown fields. It
// overwrites; Merge drops the result if that is not wanted.
type merger struct {
	decoder
	// files and units are the bundle's, encoded.
	files, units []json.RawMessage
	conflicts    []Conflict
	changed      bool
}

func (m *merger) encode(b Bundle, enc *Encoder) error {
	raw, err := enc.Ignition(b)
	if err != nil {
		return err
	}
	var ours struct {
		Storage struct{ Files []json.RawMessage }
		Systemd struct{ Units []json.RawMessage }
	}
	err = json.Unmarshal(raw, &ours)
	m.files, m.units = ours.Storage.Files, ours.Systemd.Units
	return err
}

func (m *merger) config(base []byte, b Bundle) ([]byte, error) {
	root, err := parseObject(base)
	if err != nil {
		return nil, err
	}
	if len(b.Files) > 0 {
		if err := root.change("storage", func(storage object) error { return m.storage(storage, b.Files) }); err != nil {
			return nil, err
		}
	}
	if len(b.Units) > 0 {
		if err := root.change("systemd", func(systemd object) error { return m.systemd(systemd, b.Units) }); err != nil {
			return nil, err
		}
	}
	return root.marshal()
}

func (m *merger) conflict(kind, name, format string, args ...any) {
	m.changed = true
	m.conflicts = append(m.conflicts, Conflict{kind, name, fmt.Sprintf(format, args...)})
}
