package source

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/internal/lazy"
)

// markers are placeholders of unfinished files, and what to do with each. Those that are never
// valid YAML explain a syntax error anywhere; the others may be part of a value, like $ of a
// password, and explain an error on their line only.
var markers = []struct {
	pattern     func() *regexp.Regexp
	found, hint string
	never       bool
}{
	{lazy.Regexp(`^\s*(cat|tee)\b[^#]*<<-?\s*["']?\w+`), "a shell here-document", "give the file that the shell writes: the lines between, without the command and the end marker", true},
	{lazy.Regexp(`^\s*(EOF|EOT|EOL|END)\s*$`), "the end marker of a shell here-document", "give the file that the shell writes: the lines between, without the command and the end marker", true},
	{lazy.Regexp(`\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}`), "a template of Jinja, Ansible or Helm", "give the file that it renders to", true},
	{lazy.Regexp(`\$\{\w+[^}]*\}|\$\(\w+[^)]*\)|\$[A-Za-z_]\w*`), "a shell variable", "fill it in, as with envsubst", false},
	{lazy.Regexp(`<\w[^<>]*>`), "a placeholder", "put your value in its place", false},
	{lazy.Regexp(`(?i)\b(change|replace)[-_]?(me|this)\b`), "a placeholder", "put your value in its place", false},
	{lazy.Regexp(`\b[A-Z][A-Z0-9]*(_[A-Z0-9]+)+\b`), "a placeholder", "put your value in its place", false},
}

// unfinished returns the first marker in a piece of a line, its offset and its problem.
func unfinished(text []byte, never bool) (at int, marker string, p problem.Problem, ok bool) {
	if i := bytes.Index(text, []byte(" #")); i >= 0 && !bytes.Contains(text[:i], []byte("{")) {
		text = text[:i] // drop a comment
	}
	for _, m := range markers {
		if never && !m.never {
			continue
		}
		if where := m.pattern().FindIndex(text); where != nil {
			return where[0], string(text[where[0]:where[1]]), problem.Problem{
				Severity: problem.Error, Code: problem.Template, Found: m.found, Expected: "a finished file", Hint: m.hint,
			}, true
		}
	}
	return 0, "", problem.Problem{}, false
}

// templateProblem replaces the parser's error on a line of a file that is a template. The
// quoted text is not shown: it may be in a field that vipgen does not read.
func templateProblem(data []byte, mistake int) *problem.Problem {
	number := 0
	for line := range bytes.Lines(data) {
		number++
		if bytes.HasPrefix(bytes.TrimSpace(line), []byte("#")) {
			continue
		}
		if at, _, p, ok := unfinished(bytes.TrimRight(line, "\r\n"), number != mistake); ok {
			p.Line, p.Column = number, utf8.RuneCount(line[:at])+1
			return &p
		}
	}
	return nil
}

// Unfinished replaces errors of a located list that markers of templates caused, in this
// document or in those that it is a view of. Other errors of such a file are dropped
// (problem.List.Final).
func (d *Document) Unfinished(list problem.List) problem.List {
	out := slices.Clone(list)
	for _, from := range d.originals() {
		for i, p := range out {
			if p.Code != problem.Template {
				out[i] = from.unfinishedAt(p)
			}
		}
	}
	return out
}

// unfinishedAt sets the code of an error that a marker caused: in the text of its field or, as
// braces without quotes are a mapping of mappings in YAML, after its position. Only the former
// is shown, as vipgen reads that field. Others are unchanged.
func (d *Document) unfinishedAt(p problem.Problem) problem.Problem {
	line, _ := d.Position(p.Field) // documents of a stream share one file
	if p.Severity != problem.Error || p.File != d.File || p.Line != line {
		return p
	}
	marked := func(text []byte, shown string) problem.Problem {
		_, marker, as, ok := unfinished(text, false)
		if !ok {
			return p
		}
		as.File, as.Line, as.Column, as.Field = p.File, p.Line, p.Column, p.Field
		if shown == "" {
			as.Found = fmt.Sprintf("%s, %s", problem.Quote(strings.TrimSpace(marker)), as.Found)
		}
		return as
	}
	_, node, found := d.find(p.Field)
	if found && target(node).Kind == yaml.ScalarNode {
		return marked([]byte(target(node).Value), "")
	}
	lines := bytes.Split(d.data, []byte("\n"))
	if p.Code != problem.WrongType || p.Line < 1 || p.Line > len(lines) || !bytes.Contains(fromColumn(lines[p.Line-1], p.Column), []byte("{{")) {
		return p
	}
	return marked([]byte("{{}}"), "braces")
}

// fromColumn returns the rest of a line from a column, which counts characters.
func fromColumn(line []byte, column int) []byte {
	for ; column > 1 && len(line) > 0; column-- {
		_, size := utf8.DecodeRune(line)
		line = line[size:]
	}
	return line
}
