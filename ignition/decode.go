package ignition

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/internal/yamllimit"
)

// ErrNoConfig is returned for a file with neither a MachineConfig nor an Ignition config.
var ErrNoConfig = errors.New("neither a MachineConfig nor an Ignition config")

// HoldsObjects reports whether a file, by the end of its name, may hold objects or an Ignition
// config.
func HoldsObjects(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json", ".ign"}, path.Ext(name))
}

// Decode reads every MachineConfig and Ignition config of a file: JSON or a YAML stream, lists
// of objects included, Ignition 2 and 3. Objects of other kinds are skipped. name is the file's
// and only names a bare Ignition config. Nothing is fetched.
//
// The error is for unreadable data and for data without such an object. A single file that
// cannot be decoded has a Problem instead.
func Decode(name string, data []byte) ([]Document, error) { return new(Decoder).Decode(name, data) }

// Decoder decodes files that are read together, with one bound for their unpacked contents. The
// zero value is ready to use.
type Decoder struct{ unpacked int64 }

// Decode is like the function Decode, within the decoder's bound.
func (all *Decoder) Decode(name string, data []byte) ([]Document, error) {
	objects, err := Objects(data)
	if err != nil {
		return nil, err
	}
	return all.DecodeObjects(name, objects)
}

// DecodeObjects is like Decode, of the objects in a file.
func (all *Decoder) DecodeObjects(name string, objects []json.RawMessage) ([]Document, error) {
	d := decoder{file: strings.TrimSuffix(path.Base(name), path.Ext(name)), all: all}
	for _, o := range objects {
		if err := d.object(o); err != nil {
			return nil, err
		}
	}
	if len(d.documents) == 0 {
		return nil, ErrNoConfig
	}
	return d.documents, nil
}

func objectsIn(data []byte) ([]json.RawMessage, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if objects, err := jsonStream(data); err == nil {
		return objects, nil
	}
	var objects []json.RawMessage
	for _, document := range yamlDocuments(data) {
		object, err := yamllimit.ToJSON(document)
		if err != nil {
			return nil, fmt.Errorf("neither YAML nor JSON: %w", err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// yamlDocuments splits a YAML stream at the starts of documents: three hyphens at the start of a
// line, with the directives before them.
func yamlDocuments(data []byte) (documents [][]byte) {
	start, directives := 0, -1
	for at := 0; at < len(data); {
		line := data[at:]
		if end := bytes.IndexByte(line, '\n'); end >= 0 {
			line = line[:end+1]
		}
		switch {
		case line[0] == '%' && directives < 0:
			directives = at
		case line[0] == '%':
		case startsDocument(line):
			if directives < 0 {
				directives = at
			}
			documents = append(documents, data[start:directives])
			start, directives = at+len("---"), -1
			if start < len(data) && data[start] != '\n' {
				start++ // the space
			}
		default:
			directives = -1
		}
		at += len(line)
	}
	return append(documents, data[start:])
}

func startsDocument(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	return ok && (len(rest) == 0 || strings.IndexByte(" \t\r\n", rest[0]) >= 0)
}

// jsonStream reads JSON only, which is far faster than YAML for a bootstrap.ign of many
// megabytes.
func jsonStream(data []byte) ([]json.RawMessage, error) {
	var objects []json.RawMessage
	for dec := json.NewDecoder(bytes.NewReader(data)); ; {
		var object json.RawMessage
		err := dec.Decode(&object)
		if err == io.EOF {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
}

// Objects splits a file, JSON or a YAML stream, into its objects, those of lists included.
// Other values are skipped.
func Objects(data []byte) ([]json.RawMessage, error) {
	objects, err := objectsIn(data)
	if err != nil {
		return nil, err
	}
	var out []json.RawMessage
	for _, o := range objects {
		out = flatten(out, o, 0)
	}
	return out, nil
}

const maxNesting = 8

func flatten(out []json.RawMessage, raw json.RawMessage, depth int) []json.RawMessage {
	var o struct {
		Kind  string            `json:"kind"`
		Items []json.RawMessage `json:"items"`
	}
	switch err := json.Unmarshal(raw, &o); {
	case err != nil:
		return out
	case strings.HasSuffix(o.Kind, "List") && depth < maxNesting:
		for _, item := range o.Items {
			out = flatten(out, item, depth+1)
		}
		return out
	}
	return append(out, raw)
}

type decoder struct {
	file      string
	all       *Decoder
	documents []Document
}

func (d *decoder) object(raw json.RawMessage) error {
	var o struct {
		Kind     string          `json:"kind"`
		Ignition json.RawMessage `json:"ignition"`
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil // not a Kubernetes object
	}
	switch {
	case o.Kind == "MachineConfig":
		return d.machineConfig(raw)
	case o.Kind == "" && len(o.Ignition) > 0:
		return d.bareIgnition(raw)
	}
	return nil
}

func (d *decoder) bareIgnition(raw json.RawMessage) error {
	doc := Document{Name: d.file}
	if role := strings.TrimSuffix(d.file, "-ignition"); slices.Contains([]string{"bootstrap", "master", "worker", "arbiter"}, role) {
		doc.Role = role
	}
	if err := d.config(raw, &doc); err != nil {
		return err
	}
	doc.Source = "Ignition " + doc.IgnitionVersion
	d.documents = append(d.documents, doc)
	return nil
}

func (d *decoder) machineConfig(raw json.RawMessage) error {
	var mc struct {
		Metadata struct {
			Name        string            `json:"name"`
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Spec struct {
			Config          json.RawMessage `json:"config"`
			KernelArguments []string        `json:"kernelArguments"`
			Extensions      []string        `json:"extensions"`
			FIPS            bool            `json:"fips"`
			KernelType      string          `json:"kernelType"`
			OSImageURL      string          `json:"osImageURL"`
			ExtensionsImage string          `json:"baseOSExtensionsContainerImage"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(raw, &mc); err != nil {
		return fmt.Errorf("MachineConfig: %w", err)
	}
	doc := Document{Source: "MachineConfig " + mc.Metadata.Name, Name: mc.Metadata.Name, Role: mc.Metadata.Labels[roleLabel], Annotations: mc.Metadata.Annotations}
	if len(mc.Spec.Config) > 0 && string(mc.Spec.Config) != "null" {
		if err := d.config(mc.Spec.Config, &doc); err != nil {
			return fmt.Errorf("%s: %w", doc.Source, err)
		}
		if strings.HasPrefix(doc.IgnitionVersion, "3.") {
			doc.Spelling = spellings(mc.Spec.Config)
		}
	}
	doc.addListNote("kernel arguments", mc.Spec.KernelArguments)
	doc.addListNote("extensions", mc.Spec.Extensions)
	doc.addSetting(SettingKernelArguments, strings.Join(mc.Spec.KernelArguments, " "))
	doc.addSetting(SettingExtensions, strings.Join(mc.Spec.Extensions, " "))
	if mc.Spec.FIPS {
		doc.addNote("FIPS mode")
		doc.addSetting(SettingFIPS, "true")
	}
	for _, n := range []struct{ what, setting, value string }{
		{"kernel type", SettingKernelType, mc.Spec.KernelType},
		{"operating system image", SettingOSImage, mc.Spec.OSImageURL},
		{"extensions image", SettingExtensionsImage, mc.Spec.ExtensionsImage},
	} {
		if n.value != "" {
			doc.addNote("%s: %s", n.what, n.value)
			doc.addSetting(n.setting, n.value)
		}
	}
	d.documents = append(d.documents, doc)
	return nil
}

func (d *Document) addListNote(what string, values []string) {
	if len(values) > 0 {
		d.addNote("%s: %s", what, strings.Join(values, " "))
	}
}
