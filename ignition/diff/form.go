package diff

import (
	"path"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
)

// form is how a file is to be compared.
type form int

const (
	formLines form = iota
	formYAML
	// formBraces is a file of blocks in braces, as keepalived.conf and Corefile.
	formBraces
	// formSections is one of sections that start at the margin, as haproxy.cfg.
	formSections
)

// formOf goes by the name of a file, or of the template of one.
func formOf(name string) form {
	base := strings.TrimSuffix(path.Base(name), ".tmpl")
	switch path.Ext(base) {
	case ".yaml", ".yml", ".json", ".ign":
		return formYAML
	}
	switch base {
	case "keepalived.conf", "Corefile":
		return formBraces
	case "haproxy.cfg":
		return formSections
	}
	return formLines
}

// contents compares what a file holds, by its fields or blocks where it has
// some. Of one that holds a secret it says no more than that it differs.
func (c *Change) contents(name, before, after string) {
	if secretFile(name) || formOf(name) != formYAML && (privateKey(before) || privateKey(after)) {
		c.hidden(aSecret)
		return
	}
	var fields []Field
	switch formOf(name) {
	case formYAML:
		fields = compareYAML(before, after)
	case formBraces:
		fields = compareBlocks(braces(before), braces(after))
	case formSections:
		fields = compareBlocks(sections(before), sections(after))
	}
	switch {
	case len(fields) > 0:
		c.Fields = append(c.Fields, fields...)
	case privateKey(before) || privateKey(after):
		c.hidden(aSecret)
	default:
		c.Lines = unified(before, after)
	}
}

// hidden says that contents differ, and why not how.
func (c *Change) hidden(why string) {
	c.Fields = append(c.Fields, Field{Path: "contents", What: changed, New: why})
}

// unified returns a diff of lines without a head, and without secrets.
func unified(before, after string) string {
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{A: lines(before), B: lines(after), Context: 2})
	if err != nil {
		return "" // a strings.Builder never fails
	}
	return shownLines(text)
}

// lines splits text into lines that all have an end; one that had none says so,
// as diff does.
func lines(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if !strings.HasSuffix(line, "\n") {
			line += "\n\\ No newline at end of file\n"
		}
		out = append(out, line)
	}
	return out
}
