package ignition

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// fragment is one encoded file or unit: an element of the list files or units in an Ignition
// config and in a MachineConfig.
type fragment struct{ json, yaml string }

// frame is a file without its contents: the text before and after them.
type frame struct{ before, after fragment }

// parts are the fragments of one bundle, sorted.
type parts struct {
	files []frame
	urls  []string
	units []fragment
}

type frameKey struct {
	path string
	mode int
}

// unitKey is a unit with its drop-ins in comparable form.
type unitKey struct {
	name, contents, dropins string
	enabled                 byte
}

// placeholder is the data URL of an empty file.
const placeholder = "data:,"

// parts returns the fragments of a sorted bundle, from the cache where possible, and translates
// the others together: a translation of one costs nearly as much as one of five.
//
// A file's path and mode go through Butane. The contents become a data URL by Butane's rule;
// being a valid data URL is all that Butane and Ignition require of them, and dataURL writes
// nothing else.
func (e *Encoder) parts(b Bundle) (parts, error) {
	if e.translate == nil {
		return parts{}, fmt.Errorf("unknown target %s", e.target)
	}
	b, err := ordered(b)
	if err != nil {
		return parts{}, err
	}
	p := parts{make([]frame, len(b.Files)), make([]string, len(b.Files)), make([]fragment, len(b.Units))}
	var missing uncached
	for i, f := range b.Files {
		p.urls[i] = e.dataURL(f.Contents)
		var ok bool
		if p.files[i], ok = e.frames.get(frameKey{f.Path, f.Mode}); !ok {
			missing.files = append(missing.files, File{Path: f.Path, Mode: f.Mode})
			missing.fileAt = append(missing.fileAt, i)
		}
	}
	for i, u := range b.Units {
		var ok bool
		if p.units[i], ok = e.units.get(keyOf(u)); !ok {
			missing.units = append(missing.units, u)
			missing.unitAt = append(missing.unitAt, i)
		}
	}
	if len(missing.files)+len(missing.units) == 0 {
		return p, nil
	}
	if err := e.translateMissing(missing, &p); err != nil {
		return parts{}, fmt.Errorf("pool %s: %w", b.Role, err)
	}
	return p, nil
}

// uncached holds the files and units that the cache lacks, with their indexes in the bundle.
type uncached struct {
	files          []File
	units          []Unit
	fileAt, unitAt []int
}

// text rejects text that JSON and YAML would change.
func (m uncached) text() error {
	for _, f := range m.files {
		if !utf8.ValidString(f.Path) {
			return fmt.Errorf("file %q: the path is not UTF-8", f.Path)
		}
	}
	for _, u := range m.units {
		for _, d := range append([]Dropin{{u.Name, u.Contents}}, u.Dropins...) {
			if !utf8.ValidString(d.Name) || !utf8.ValidString(d.Contents) {
				return fmt.Errorf("unit %q: %q is not UTF-8", u.Name, d.Name)
			}
		}
	}
	return nil
}

func (e *Encoder) translateMissing(m uncached, p *parts) error {
	if err := m.text(); err != nil {
		return err
	}
	raw, err := e.translate(m.files, m.units)
	if err != nil {
		return err
	}
	var config struct {
		Storage struct{ Files []json.RawMessage }
		Systemd struct{ Units []json.RawMessage }
	}
	if err := json.Unmarshal(raw, &config); err != nil {
		return err
	}
	if len(config.Storage.Files) != len(m.files) || len(config.Systemd.Units) != len(m.units) {
		return fmt.Errorf("butane made %d files of %d and %d units of %d",
			len(config.Storage.Files), len(m.files), len(config.Systemd.Units), len(m.units))
	}
	for i, f := range m.files {
		frag, err := newFragment(config.Storage.Files[i])
		if err != nil {
			return err
		}
		fr := newFrame(frag)
		p.files[m.fileAt[i]] = fr
		e.frames.put(frameKey{f.Path, f.Mode}, fr, len(f.Path)+len(frag.json)+len(frag.yaml))
	}
	for i, u := range m.units {
		frag, err := newFragment(config.Systemd.Units[i])
		if err != nil {
			return err
		}
		p.units[m.unitAt[i]] = frag
		k := keyOf(u)
		e.units.put(k, frag, len(k.contents)+len(k.dropins)+len(frag.json)+len(frag.yaml))
	}
	return nil
}

func (e *Encoder) dataURL(contents []byte) string {
	key := string(contents)
	url, ok := e.urls.get(key)
	if !ok {
		url = dataURL(contents)
		e.urls.put(key, url, len(key)+len(url))
	}
	return url
}

func keyOf(u Unit) unitKey {
	k := unitKey{name: u.Name, contents: u.Contents}
	if u.Enabled != nil {
		k.enabled = 1
		if *u.Enabled {
			k.enabled = 2
		}
	}
	if len(u.Dropins) > 0 {
		k.dropins = fmt.Sprintf("%q", u.Dropins)
	}
	return k
}

// newFragment formats an element at the depth of the lists of files and units.
func newFragment(raw json.RawMessage) (fragment, error) {
	var indented bytes.Buffer
	indented.WriteString("      ")
	if err := json.Indent(&indented, raw, "      ", "  "); err != nil {
		return fragment{}, err
	}
	var element any
	if err := json.Unmarshal(raw, &element); err != nil {
		return fragment{}, err
	}
	yaml, err := marshalYAML([]any{texts(element)})
	if err != nil {
		return fragment{}, err
	}
	return fragment{indented.String(), indent(yaml, "      ")}, nil
}

// newFrame splits a file's fragment around its contents. The key source is the first in both
// formats that can be followed by the placeholder: contents come before path.
func newFrame(f fragment) frame {
	var fr frame
	fr.before.json, fr.after.json = around(f.json, `"source": "`)
	fr.before.yaml, fr.after.yaml = around(f.yaml, `source: `)
	return fr
}

func around(text, key string) (before, after string) {
	before, after, _ = strings.Cut(text, key+placeholder)
	return before + key, after
}
