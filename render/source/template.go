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

// markers are what files hold that are not finished yet, and what to do with each.
// Those that are never a part of YAML explain a mistake of syntax anywhere; the others may
// be a part of what is meant to be there, as $ is of a password, and explain one on their
// line only.
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

// unfinished finds the first marker in a piece of a line, and says where and what it is.
func unfinished(text []byte, never bool) (at int, marker string, p problem.Problem, ok bool) {
	if i := bytes.Index(text, []byte(" #")); i >= 0 && !bytes.Contains(text[:i], []byte("{")) {
		text = text[:i] // a comment
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

// templateProblem takes the place of what the parser says of a file that is a template,
// on a line. What it quotes is not shown: it may stand in a field that vipgen does not read.
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

// Unfinished turns the errors of a located list that are about templates' markers in this
// document, or in those that it is a view of, into what they are: a template's. What else
// is wrong with such a file is not worth a word (problem.List.Final).
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

// unfinishedAt gives an error about a marker the code of one: where that is in the text of
// its field, or, as braces without quotes are a mapping of mappings in YAML, after its
// place. Only the former is shown, as vipgen reads that field. Others stay as they are.
func (d *Document) unfinishedAt(p problem.Problem) problem.Problem {
	line, _ := d.Position(p.Field) // documents of a stream have one file
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

// fromColumn is what stands in a line from a column on, which counts characters.
func fromColumn(line []byte, column int) []byte {
	for ; column > 1 && len(line) > 0; column-- {
		_, size := utf8.DecodeRune(line)
		line = line[size:]
	}
	return line
}
