package diff

import (
	"path"
	"strings"

	"github.com/pmezard/go-difflib/difflib"

	"github.com/vipgen/vipgen/ignition"
)

type form int

const (
	formLines form = iota
	formYAML
	// blocks in braces, as in keepalived.conf and Corefile
	formBraces
	// sections that start at the margin, as in haproxy.cfg
	formSections
)

// formOf chooses the form by the name of a file, or of its template.
func formOf(name string) form {
	base := strings.TrimSuffix(path.Base(name), ".tmpl")
	switch {
	case ignition.HoldsObjects(base):
		return formYAML
	case base == "keepalived.conf", base == "Corefile":
		return formBraces
	case base == "haproxy.cfg":
		return formSections
	}
	return formLines
}

// contents compares the contents of a file, by fields or blocks where it has some. A file with
// a secret only gets the note that it differs.
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

// hidden records why the difference of contents is not shown.
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

// lines splits text into lines that all have an end; the last one is marked if it had none, as
// in diff.
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
