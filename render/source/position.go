package source

import (
	"cmp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/vipgen/vipgen/api/problem"
)

// Position returns the line and column, from 1, of a field path such as
// "platform.baremetal.apiVIPs[0]": of the value if it is text or a number, of its key if it is
// a list, a mapping or empty. For a field that is not in the file, it is the position of the
// nearest parent.
func (d *Document) Position(field string) (line, column int) {
	steps, node, _ := d.find(field)
	at := place(steps, node)
	return at.Line, at.Column
}

// Has reports whether a field path has a value other than null. It reads keys only, never
// values.
func (d *Document) Has(field string) bool {
	_, node, found := d.find(field)
	return found && !isNull(target(node))
}

// Locate returns the problems with missing File, Line and Column filled in from their Field.
func (d *Document) Locate(l problem.List) problem.List {
	l = slices.Clone(l)
	for i := range l {
		p := &l[i]
		if p.Line == 0 {
			*p = d.original(*p)
		}
		p.File = cmp.Or(p.File, d.File)
		if p.Line == 0 {
			p.Line, p.Column = d.Position(p.Field)
		}
	}
	return l
}

// find walks a path as far as possible and returns the steps taken, the node reached and
// whether that is the whole path.
func (d *Document) find(field string) ([]step, *yaml.Node, bool) {
	node := d.root
	steps := parsePath(field)
	for i, s := range steps {
		key, value := child(target(node), s)
		if value == nil {
			return steps[:i], node, false
		}
		steps[i].key = key
		node = value
	}
	return steps, node, true
}

func child(n *yaml.Node, s step) (key, value *yaml.Node) {
	if s.name == "" && s.key == nil {
		if n.Kind == yaml.SequenceNode && s.index >= 0 && s.index < len(n.Content) {
			return nil, n.Content[s.index]
		}
		return nil, nil
	}
	for _, e := range entries(n) {
		switch {
		case e.key.Value == s.name:
			return e.key, e.value
		case key == nil && strings.EqualFold(e.key.Value, s.name): // as in Decode
			key, value = e.key, e.value
		}
	}
	return key, value
}

// place returns the node whose position Position returns for a value.
func place(steps []step, node *yaml.Node) *yaml.Node {
	if len(steps) > 0 {
		key := steps[len(steps)-1].key
		if key != nil && (target(node).Kind != yaml.ScalarNode || isNull(node)) {
			return key
		}
	}
	return node
}

// Keys returns the keys of the mapping at a field path with a value other than null, in their
// order.
func (d *Document) Keys(field string) []string {
	_, node, found := d.find(field)
	if !found {
		return nil
	}
	var keys []string
	for _, e := range entries(target(node)) {
		if !isNull(target(e.value)) {
			keys = append(keys, e.key.Value)
		}
	}
	return keys
}
