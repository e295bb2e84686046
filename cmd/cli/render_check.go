package cli

import (
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/tree"
)

// printChanges shows how a directory differs from what was rendered: files by
// name, and inside MachineConfigs and Ignition configs the files of the node,
// not their encoding.
func printChanges(w io.Writer, colours command.Palette, dir string, changes []tree.Change) error {
	for _, c := range changes {
		name := filepath.Join(dir, filepath.FromSlash(c.Path))
		if _, err := fmt.Fprintf(w, "%s: %s\n", command.SafeLine(name), c.Kind); err != nil {
			return err
		}
		if c.Kind != tree.Differs {
			continue
		}
		if err := printDiff(w, colours, c); err != nil {
			return err
		}
	}
	return nil
}

func printDiff(w io.Writer, colours command.Palette, c tree.Change) error {
	have, got := nodeFiles(c.Path, c.Have), nodeFiles(c.Path, c.Got)
	if have == nil || got == nil || slices.EqualFunc(have, got, func(a, b nodeFile) bool { return a == b }) {
		return unified(w, colours, "", string(c.Have), string(c.Got))
	}
	for i, j := 0, 0; i < len(have) || j < len(got); {
		switch {
		case j == len(got) || i < len(have) && have[i].path < got[j].path:
			fmt.Fprintf(w, "  %s: only in the directory\n", command.SafeLine(have[i].path))
			i++
		case i == len(have) || got[j].path < have[i].path:
			fmt.Fprintf(w, "  %s: only rendered\n", command.SafeLine(got[j].path))
			j++
		default:
			if have[i] != got[j] {
				if err := unified(w, colours, have[i].path, have[i].text, got[j].text); err != nil {
					return err
				}
			}
			i++
			j++
		}
	}
	return nil
}

type nodeFile struct{ path, text string }

// nodeFiles decodes what nodes get of a MachineConfig or Ignition config; nil
// where the file is something else.
func nodeFiles(name string, data []byte) []nodeFile {
	if !strings.HasPrefix(name, "machineconfigs/") && !strings.HasSuffix(name, ".ign") && !strings.HasSuffix(name, "_machineconfig.yaml") {
		return nil
	}
	docs, err := ignition.Decode(path.Base(name), data)
	if err != nil {
		return nil
	}
	out := []nodeFile{}
	for _, d := range docs {
		b := d.Bundle()
		for _, f := range b.Files {
			out = append(out, nodeFile{f.Path, fmt.Sprintf("mode %04o\n%s", f.Mode, f.Contents)})
		}
		for _, u := range b.Units {
			out = append(out, nodeFile{"unit " + u.Name, unitText(u)})
		}
	}
	slices.SortFunc(out, func(a, b nodeFile) int { return strings.Compare(a.path, b.path) })
	return out
}

// unified prints a diff in the usual form, indented under the name of a node's
// file.
func unified(w io.Writer, colours command.Palette, name, have, got string) error {
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: difflib.SplitLines(have), B: difflib.SplitLines(got),
		FromFile: "in the directory", ToFile: "rendered", Context: 2,
	})
	if err != nil {
		return err
	}
	if name != "" {
		fmt.Fprintf(w, "  %s\n", command.SafeLine(name))
	}
	for line := range strings.Lines(text) {
		if _, err := fmt.Fprintln(w, colours.Diff("    "+command.Safe(strings.TrimRight(line, "\n")))); err != nil {
			return err
		}
	}
	return nil
}

func unitText(u ignition.Unit) string {
	var b strings.Builder
	if u.Enabled != nil {
		fmt.Fprintf(&b, "enabled %t\n", *u.Enabled)
	}
	b.WriteString(u.Contents)
	for _, d := range u.Dropins {
		fmt.Fprintf(&b, "drop-in %s\n%s", d.Name, d.Contents)
	}
	return b.String()
}
