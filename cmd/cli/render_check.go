package cli

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"

	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/tree"
)

// changesText prints how a directory differs from the rendered files: files by name, and inside
// MachineConfigs and Ignition configs the files of the node, not their encoding.
func changesText(p *printer, dir string, changes []tree.Change) {
	for _, c := range changes {
		p.line("%s: %s", filepath.Join(dir, filepath.FromSlash(c.Path)), c.Kind)
		if c.Kind == tree.Differs {
			p.in(func() { differenceText(p, c) })
		}
	}
}

func differenceText(p *printer, c tree.Change) {
	have, got := nodeFiles(c.Path, c.Have), nodeFiles(c.Path, c.Got)
	if have == nil || got == nil || slices.Equal(have, got) {
		unifiedText(p, string(c.Have), string(c.Got))
		return
	}
	for i, j := 0, 0; i < len(have) || j < len(got); {
		switch {
		case j == len(got) || i < len(have) && have[i].path < got[j].path:
			p.line("%s: only in the directory", have[i].path)
			i++
		case i == len(have) || got[j].path < have[i].path:
			p.line("%s: only rendered", got[j].path)
			j++
		default:
			if have[i] != got[j] {
				p.line("%s", have[i].path)
				unifiedText(p, have[i].text, got[j].text)
			}
			i++
			j++
		}
	}
}

type nodeFile struct{ path, text string }

// nodeFiles returns the files of nodes in a MachineConfig or Ignition config; nil for other
// files.
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
		out = append(out, lists.Map(b.Units, func(u ignition.Unit) nodeFile { return nodeFile{"unit " + u.Name, unitText(u)} })...)
	}
	slices.SortFunc(out, func(a, b nodeFile) int { return strings.Compare(a.path, b.path) })
	return out
}

func unifiedText(p *printer, have, got string) {
	text, _ := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{ // in memory
		A: difflib.SplitLines(have), B: difflib.SplitLines(got),
		FromFile: "in the directory", ToFile: "rendered", Context: 2,
	})
	p.in(func() { p.text(text) })
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
