package source

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// SetNumber returns data, a YAML file, with a number set in a field such as
// "spec.vrrp.virtualRouterIDs.api"; everything else, comments and layout included, is
// unchanged. Missing parents are added; items of lists must exist. The error is for layouts
// that it cannot edit, which people do not write.
func SetNumber(data []byte, field string, value int) ([]byte, error) {
	d := &Document{}
	if p := d.load(data); p != nil {
		return nil, fmt.Errorf("%s", p)
	}
	steps, node, _ := d.find(field)
	all := parsePath(field)
	rest := all[len(steps):]
	for _, s := range rest {
		if s.name == "" {
			return nil, fmt.Errorf("%s: no such item", field)
		}
	}
	e := editor{lines: bytes.SplitAfter(data, []byte("\n"))}
	var ok bool
	if len(rest) == 0 {
		ok = e.replace(node, value)
	} else {
		ok = e.add(d.root, steps, node, rest, value)
	}
	out := bytes.Join(e.lines, nil)
	if !ok || !sameBut(data, out, all, value) {
		return nil, fmt.Errorf("%s: cannot be set without changing the layout of the file", field)
	}
	return out, nil
}

type editor struct{ lines [][]byte }

// replace overwrites a plain value.
func (e *editor) replace(n *yaml.Node, value int) bool {
	if n.Kind != yaml.ScalarNode || n.Line < 1 || n.Line > len(e.lines) {
		return false
	}
	line := e.lines[n.Line-1]
	at := n.Column - 1
	if at < 0 || at > len(line) || n.Value == "" || !bytes.HasPrefix(line[at:], []byte(n.Value)) {
		return false
	}
	e.splice(n.Line, at, len(n.Value), fmt.Sprint(value))
	return true
}

func (e *editor) splice(line, at, length int, text string) {
	old := e.lines[line-1]
	e.lines[line-1] = append(append(bytes.Clone(old[:at]), text...), old[at+length:]...)
}

// add inserts the missing fields below a node.
func (e *editor) add(root *yaml.Node, steps []step, n *yaml.Node, rest []step, value int) bool {
	switch {
	case n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle != 0:
		return e.addFlow(n, rest, value)
	case n.Kind == yaml.MappingNode && n == root:
		return e.append(block(rest, value, n.Column-1))
	case n.Kind == yaml.MappingNode:
		return e.addBlock(n, rest, value)
	case isNull(n) && n.Value == "" && len(steps) > 0 && steps[len(steps)-1].key != nil:
		key := steps[len(steps)-1].key // "key:" without a value
		e.insertAfter(key.Line, block(rest, value, key.Column+1))
		return true
	}
	return false
}

// addFlow inserts after the brace of {}.
func (e *editor) addFlow(n *yaml.Node, rest []step, value int) bool {
	line := e.lines[n.Line-1]
	at := n.Column - 1
	if at < 0 || at >= len(line) || line[at] != '{' {
		return false
	}
	text := flow(rest, value)
	if len(n.Content) > 0 {
		text += ", "
	}
	e.splice(n.Line, at+1, 0, text)
	return true
}

// addBlock inserts before the first key that starts its line.
func (e *editor) addBlock(n *yaml.Node, rest []step, value int) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		line := e.lines[key.Line-1]
		if key.Column-1 <= len(line) && len(bytes.TrimLeft(line[:key.Column-1], " ")) == 0 {
			e.insertAfter(key.Line-1, block(rest, value, key.Column-1))
			return true
		}
	}
	if len(n.Content) != 2 || n.Content[1].Kind != yaml.ScalarNode || n.Content[1].Line != n.Content[0].Line {
		return false
	}
	e.insertAfter(n.Content[0].Line, block(rest, value, n.Content[0].Column-1)) // "- name: x" alone
	return true
}

func (e *editor) append(text string) bool {
	e.insertAfter(len(e.lines), text)
	return true
}

// insertAfter inserts lines after the line with a number from 1; 0 is the start.
func (e *editor) insertAfter(line int, text string) {
	if line > 0 && len(e.lines[line-1]) > 0 && !bytes.HasSuffix(e.lines[line-1], []byte("\n")) {
		e.lines[line-1] = append(bytes.Clone(e.lines[line-1]), '\n')
	}
	rest := append([][]byte{[]byte(text)}, e.lines[line:]...)
	e.lines = append(e.lines[:line:line], rest...)
}

// block writes nested keys on their own lines, with a value after the last.
func block(rest []step, value, indent int) string {
	var b strings.Builder
	for i, s := range rest {
		fmt.Fprintf(&b, "%s%s:", strings.Repeat(" ", indent+2*i), s.name)
		if i == len(rest)-1 {
			fmt.Fprintf(&b, " %d", value)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// flow writes nested keys on one line.
func flow(rest []step, value int) string {
	out := fmt.Sprint(value)
	for i := len(rest) - 1; i >= 0; i-- {
		out = rest[i].name + ": " + out
		if i > 0 {
			out = "{" + out + "}"
		}
	}
	return out
}

// sameBut checks that two files differ in one field only.
func sameBut(before, after []byte, field []step, value int) bool {
	var a, b any
	if yaml.Unmarshal(before, &a) != nil || yaml.Unmarshal(after, &b) != nil {
		return false
	}
	want, ok := with(a, field, value)
	return ok && reflect.DeepEqual(want, b)
}

func with(v any, field []step, value int) (any, bool) {
	if len(field) == 0 {
		return value, true
	}
	s := field[0]
	if s.name == "" {
		list, ok := v.([]any)
		if !ok || s.index < 0 || s.index >= len(list) {
			return nil, false
		}
		list[s.index], ok = with(list[s.index], field[1:], value)
		return list, ok
	}
	m, ok := v.(map[string]any)
	if v == nil {
		m, ok = map[string]any{}, true
	}
	if !ok {
		return nil, false
	}
	m[s.name], ok = with(m[s.name], field[1:], value)
	return m, ok
}
