package source

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/internal/lists"
)

// View builds a document from values of other documents, perhaps at other paths: one reader
// reads both forms, and problems name the user's file, path and line.
type View struct{ doc *Document }

// part is the source of a view's field and everything below it.
type part struct {
	field string
	from  *Document
	path  string
	// derived values follow from the path, which does not have them literally.
	derived bool
}

// NewView returns an empty view. Missing fields are reported at a path of a document.
func NewView(from *Document, path string) *View {
	root := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	root.Line, root.Column = from.Position(path)
	return &View{&Document{File: from.File, root: root, parts: []part{{"", from, path, true}}}}
}

func (v *View) Document() *Document { return v.doc }

// Copy copies a field from a path of a document, also if it has no value.
func (v *View) Copy(field string, from *Document, path string) {
	v.doc.parts = append(v.doc.parts, part{field, from, path, false})
	if _, node, found := from.find(path); found && !isNull(target(node)) {
		v.set(field, node)
	}
}

// Put sets a field to a value that follows from a path.
func (v *View) Put(field, value string, from *Document, path string) {
	v.doc.parts = append(v.doc.parts, part{field, from, path, true})
	v.set(field, v.node(&yaml.Node{Kind: yaml.ScalarNode, Value: value}, from, path))
}

// Empty sets a field to a mapping without keys that follows from a path.
func (v *View) Empty(field string, from *Document, path string) {
	v.doc.parts = append(v.doc.parts, part{field, from, path, true})
	v.set(field, v.node(&yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}, from, path))
}

func (v *View) node(n *yaml.Node, from *Document, path string) *yaml.Node {
	n.Line, n.Column = from.Position(path)
	return n
}

// set sets a node at a field and makes its parents. Items of lists come in their order.
func (v *View) set(field string, value *yaml.Node) {
	at := v.doc.root
	steps := parsePath(field)
	for i, s := range steps {
		_, next := child(at, s)
		last := i == len(steps)-1
		if next == nil || last {
			next = value
			if !last {
				next = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: value.Line, Column: value.Column}
				if steps[i+1].name == "" {
					next.Kind, next.Tag = yaml.SequenceNode, "!!seq"
				}
			}
			put(at, s, next, value)
		}
		at = next
	}
}

// put sets a key of a mapping, or adds an item to a list.
func put(at *yaml.Node, s step, value, place *yaml.Node) {
	if s.name == "" {
		at.Content = append(at.Content, value)
		return
	}
	for i := 0; i+1 < len(at.Content); i += 2 {
		if at.Content[i].Value == s.name {
			at.Content[i+1] = value
			return
		}
	}
	key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s.name, Line: place.Line, Column: place.Column}
	at.Content = append(at.Content, key, value)
}

// Overlay merges a mapping that is text, in YAML or JSON, at a path of a document: mappings key
// by key, everything else as wholes. It reports unreadable text.
func (v *View) Overlay(from *Document, path string) problem.List {
	text := from.Text(path)
	if text == "" {
		return nil
	}
	over, _ := Parse(from.File, []byte(text))
	if over == nil || over.root.Kind != yaml.MappingNode {
		return from.Locate(problem.List{{Severity: problem.Error, Code: problem.Syntax, Field: path,
			Found: "text that cannot be read", Expected: "a JSON object with fields of the install-config"}})
	}
	line, column := from.Position(path)
	v.overlay(over.root, nil, from, path, line, column)
	return nil
}

func (v *View) overlay(n *yaml.Node, at []step, from *Document, path string, line, column int) {
	for _, e := range entries(n) {
		steps := append(slices.Clip(at), step{name: e.key.Value, key: e.key})
		field := formatPath(steps)
		if target(e.value).Kind == yaml.MappingNode && len(target(e.value).Content) > 0 {
			v.overlay(target(e.value), steps, from, path, line, column)
			continue
		}
		move(e.value, line, column)
		v.doc.parts = append(v.doc.parts, part{field, from, path + "." + field, true})
		v.set(field, e.value)
	}
}

// move sets the position of a node and everything below it.
func move(n *yaml.Node, line, column int) {
	n.Line, n.Column = line, column
	for _, c := range n.Content {
		move(c, line, column)
	}
}

// Text returns the text at a path, or "".
func (d *Document) Text(path string) string {
	_, node, found := d.find(path)
	if !found || target(node).Kind != yaml.ScalarNode || isNull(target(node)) {
		return ""
	}
	return target(node).Value
}

// Len returns the length of the list at a path.
func (d *Document) Len(path string) int {
	_, node, found := d.find(path)
	if !found || target(node).Kind != yaml.SequenceNode {
		return 0
	}
	return len(target(node).Content)
}

// original maps a problem of a view to the document of its value. Its Key remains the view's
// field.
func (d *Document) original(p problem.Problem) problem.Problem {
	if d.parts == nil || p.Key != "" {
		return p
	}
	from, path := d.origin(p.Field)
	p.Key, p.Field, p.File = p.Field, path, from.File
	if p.Line == 0 {
		p.Line, p.Column = from.Position(path)
	}
	p.Expected, p.Hint = d.spell(p.Expected), d.spell(p.Hint)
	return p
}

// originals returns the source documents of a view, each once; a file is its only source.
func (d *Document) originals() []*Document {
	if d.parts == nil {
		return []*Document{d}
	}
	return lists.Add([]*Document(nil), lists.Map(d.parts, func(p part) *Document { return p.from })...)
}

// origin returns the source of a field: of the longest matching part, the last.
func (d *Document) origin(field string) (*Document, string) {
	best, rest := d.parts[0], ""
	for _, p := range d.parts[1:] {
		if r, ok := strings.CutPrefix(field, p.field); ok && len(p.field) >= len(best.field) && (r == "" || r[0] == '.' || r[0] == '[') {
			best, rest = p, r
		}
	}
	if best.derived {
		rest = ""
	}
	return best.from, best.path + rest
}

// spell replaces the field names in a text by their spelling in the source files.
func (d *Document) spell(text string) string {
	if !strings.Contains(text, ".") {
		return text
	}
	parts := slices.Clone(d.parts)
	slices.SortStableFunc(parts, func(a, b part) int { return len(b.field) - len(a.field) })
	var pairs []string
	for _, p := range parts {
		if !p.derived && strings.Contains(p.field, ".") {
			pairs = append(pairs, p.field, p.path)
		}
	}
	return strings.NewReplacer(pairs...).Replace(text)
}
