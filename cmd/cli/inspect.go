package cli

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/ignition/diff"
	"github.com/vipgen/vipgen/internal/input"
	"github.com/vipgen/vipgen/internal/tree"
	"github.com/vipgen/vipgen/render"
)

func (a *app) inspectCommand() *cobra.Command {
	var out string
	var contents, overwrite bool
	var o command.Format
	c := &cobra.Command{
		Use:   "inspect FILE|DIR...",
		Short: "Decode any MachineConfig or Ignition file into a readable tree",
		Long: `Decode MachineConfigs and Ignition configs, vipgen's or anyone's: YAML streams,
lists, JSON, Ignition 2 and 3, data URLs, gzip. Print what nodes get. Nothing is
fetched, and secrets are not shown; --dir writes the files as they are.`,
		Example: `  vipgen inspect rendered/machineconfigs
  oc get machineconfig -o yaml | vipgen inspect -
  vipgen inspect --contents rendered/ignition/master.ign
  vipgen inspect bootstrap.ign --dir bootstrap-files`,
		Args: command.Args(1, -1),
		RunE: func(c *cobra.Command, args []string) error {
			defer collectEarlier()()
			docs, err := a.decodeAll(args)
			if err != nil {
				return err
			}
			if out != "" {
				return a.extract(docs, tree.Dir{Path: out, Overwrite: overwrite})
			}
			return show(a, o, inspect(docs, contents), inspectionText)
		},
	}
	o.Add(c, "text", "json")
	command.Dir(c, &out, "`directory` to write the files of the nodes to, in a folder for each document")
	c.Flags().BoolVar(&contents, "contents", false, "also print the contents of files and units, without secrets")
	c.Flags().BoolVar(&overwrite, "overwrite", false, "with --dir, replace files that vipgen did not write")
	return c
}

// decodeAll decodes files, and the files of folders in the order of their names. A folder may
// hold other files.
func (a *app) decodeAll(names []string) ([]ignition.Document, error) {
	var docs []ignition.Document
	var sum input.Sum
	var all ignition.Decoder
	err := a.eachFile(names, ignition.HoldsObjects, func(name string, inFolder bool, data []byte, err error) error {
		if err == nil {
			err = sum.Add(name, data)
		}
		if err != nil {
			return err
		}
		d, err := all.Decode(path.Base(name), data)
		if err != nil && !(inFolder && errors.Is(err, ignition.ErrNoConfig)) {
			return problem.List{{File: name, Severity: problem.Error, Code: problem.Syntax, Found: err.Error(), Expected: "a MachineConfig or an Ignition config"}}
		}
		docs = append(docs, d...)
		return nil
	})
	return docs, err
}

// inspection is the content of the documents.
type inspection struct {
	Documents []inspected `json:"documents"`
}

type inspected struct {
	Source   string          `json:"source"`
	Name     string          `json:"name"`
	Pool     string          `json:"pool,omitempty"`
	Ignition string          `json:"ignition,omitempty"`
	Files    []inspectedFile `json:"files"`
	Units    []inspectedUnit `json:"units"`
	// Notes list its other content.
	Notes []string `json:"notes,omitempty"`
}

type inspectedFile struct {
	Path string `json:"path"`
	Mode string `json:"mode"`
	Size int    `json:"size"`
	// Append is set where the contents are appended to a file of the operating system.
	Append bool `json:"append,omitempty"`
	// Remote is the source of the contents, Problem why they could not be decoded.
	Remote  string `json:"remote,omitempty"`
	Problem string `json:"problem,omitempty"`
	// Contents are set with --contents, without secrets.
	Contents string `json:"contents,omitempty"`
}

type inspectedUnit struct {
	Name string `json:"name"`
	// Enabled is missing where another unit starts the unit.
	Enabled  *bool             `json:"enabled,omitempty"`
	Contents string            `json:"contents,omitempty"`
	Dropins  []inspectedDropin `json:"dropins,omitempty"`
}

type inspectedDropin struct {
	Name     string `json:"name"`
	Contents string `json:"contents,omitempty"`
}

// inspect lists the contents of documents, with the text of files if contents is set.
func inspect(docs []ignition.Document, contents bool) inspection {
	shown := func(name string, mode int, text string) string {
		if !contents {
			return ""
		}
		return diff.Shown(name, mode, text)
	}
	out := inspection{Documents: []inspected{}}
	for _, d := range docs {
		i := inspected{Source: d.Source, Name: d.Name, Pool: d.Role, Ignition: d.IgnitionVersion, Files: []inspectedFile{}, Units: []inspectedUnit{}, Notes: d.Notes}
		for _, f := range d.Files {
			i.Files = append(i.Files, inspectedFile{f.Path, fmt.Sprintf("%04o", f.Mode), len(f.Contents), f.Append, f.Remote, f.Problem, shown(f.Path, f.Mode, string(f.Contents))})
		}
		for _, u := range d.Units {
			unit := inspectedUnit{Name: u.Name, Enabled: u.Enabled, Contents: shown(u.Name, 0, u.Contents)}
			for _, drop := range u.Dropins {
				unit.Dropins = append(unit.Dropins, inspectedDropin{drop.Name, shown(drop.Name, 0, drop.Contents)})
			}
			i.Units = append(i.Units, unit)
		}
		out.Documents = append(out.Documents, i)
	}
	return out
}

// inspectionText prints documents as an indented tree.
func inspectionText(p *printer, list inspection) {
	for _, d := range list.Documents {
		about := d.Source
		if d.Pool != "" {
			about += ", pool " + d.Pool
		}
		if d.Ignition != "" && !strings.HasPrefix(d.Source, "Ignition") {
			about += ", Ignition " + d.Ignition
		}
		p.line("%s", about)
		for _, f := range d.Files {
			p.line("  file %s (%s, %d bytes)%s", f.Path, f.Mode, f.Size, origin(f))
			indent(p, f.Contents)
		}
		for _, u := range d.Units {
			p.line("  unit %s%s", u.Name, unitState(u))
			indent(p, u.Contents)
			for _, drop := range u.Dropins {
				p.line("    drop-in %s", drop.Name)
				indent(p, drop.Contents)
			}
		}
		for _, n := range d.Notes {
			p.line("  %s", n)
		}
	}
}

func unitState(u inspectedUnit) string {
	switch {
	case u.Enabled == nil:
		return ""
	case *u.Enabled:
		return " (enabled)"
	default:
		return " (disabled)"
	}
}

func indent(p *printer, text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintf(p, "      | %s\n", command.Safe(strings.TrimRight(line, "\n")))
	}
}

// extract writes the files of nodes, a folder for each document.
func (a *app) extract(docs []ignition.Document, dir tree.Dir) error {
	var files []render.OutputFile
	used := map[string]bool{}
	for i, d := range docs {
		name := d.Name
		for n := i + 1; !folderName(name) || used[name]; n++ {
			name = fmt.Sprintf("document-%d", n)
		}
		used[name] = true
		b := d.Bundle()
		for _, f := range b.Files {
			p := strings.TrimPrefix(filepath.ToSlash(filepath.Clean("/"+f.Path)), "/")
			files = append(files, render.OutputFile{Path: name + "/" + p, Data: f.Contents})
		}
		for _, u := range b.Units {
			files = append(files, render.OutputFile{Path: name + "/etc/systemd/system/" + filepath.Base(u.Name), Data: []byte(unitText(u))})
		}
	}
	return a.writeDir(dir, files, false)
}

// folderName reports whether the name of a document is a valid folder name.
func folderName(s string) bool {
	return filepath.IsLocal(s) && !strings.HasPrefix(s, ".") && !strings.ContainsAny(s, `/\`) && command.SafeLine(s) == s
}

// origin returns the source of contents that are not in the document, or why they could not be
// decoded.
func origin(f inspectedFile) string {
	var out string
	if f.Append {
		out += ", appended"
	}
	if f.Remote != "" {
		out += ", from " + f.Remote
	}
	if f.Problem != "" {
		out += ", " + f.Problem
	}
	return out
}
