package ignition

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// The part of Butane's schema that a bundle needs, in the order in which people write it.

type butaneConfig struct {
	Variant  string          `yaml:"variant"`
	Version  string          `yaml:"version"`
	Metadata *butaneMetadata `yaml:"metadata,omitempty"`
	Storage  *butaneStorage  `yaml:"storage,omitempty"`
	Systemd  *butaneSystemd  `yaml:"systemd,omitempty"`
}

type butaneMetadata struct {
	Name   text            `yaml:"name"`
	Labels map[string]text `yaml:"labels"`
}

type butaneStorage struct {
	Files []butaneFile `yaml:"files"`
}

type butaneSystemd struct {
	Units []butaneUnit `yaml:"units"`
}

type butaneFile struct {
	Path      text       `yaml:"path"`
	Mode      yaml.Node  `yaml:"mode"`
	Overwrite bool       `yaml:"overwrite"`
	Contents  butaneText `yaml:"contents"`
}

type butaneText struct {
	Inline text `yaml:"inline"`
}

type butaneUnit struct {
	Name     text           `yaml:"name"`
	Enabled  *bool          `yaml:"enabled,omitempty"`
	Contents text           `yaml:"contents,omitempty"`
	Dropins  []butaneDropin `yaml:"dropins,omitempty"`
}

type butaneDropin struct {
	Name     text `yaml:"name"`
	Contents text `yaml:"contents"`
}

// Butane writes a bundle as a Butane config, for people who run butane on it. The result is the
// output of MachineConfig or, for the other variants, Ignition, with two differences: Butane
// has no annotations, and the butane program compresses large files.
func (e *Encoder) Butane(b Bundle, meta Metadata) ([]byte, error) {
	if _, err := e.config(b); err != nil {
		return nil, err
	}
	b, err := ordered(b)
	if err != nil {
		return nil, err
	}
	config := butaneConfig{Variant: e.target.Variant, Version: e.butane}
	if e.target.Variant == OpenShift {
		labels, err := meta.labels(b.Role)
		if err != nil {
			return nil, err
		}
		config.Metadata = &butaneMetadata{text(meta.Name), textMap(labels)}
	}
	if len(b.Files) > 0 {
		config.Storage = &butaneStorage{butaneFiles(b.Files)}
	}
	if len(b.Units) > 0 {
		config.Systemd = &butaneSystemd{butaneUnits(b.Units)}
	}
	return marshalYAML(config)
}

func butaneFiles(files []File) []butaneFile {
	out := make([]butaneFile, len(files))
	for i, f := range files {
		mode := yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: fmt.Sprintf("%#o", f.Mode)}
		out[i] = butaneFile{text(f.Path), mode, true, butaneText{text(f.Contents)}}
	}
	return out
}

func butaneUnits(units []Unit) []butaneUnit {
	out := make([]butaneUnit, len(units))
	for i, u := range units {
		out[i] = butaneUnit{Name: text(u.Name), Enabled: u.Enabled, Contents: text(u.Contents)}
		for _, d := range u.Dropins {
			out[i].Dropins = append(out[i].Dropins, butaneDropin{text(d.Name), text(d.Contents)})
		}
	}
	return out
}
