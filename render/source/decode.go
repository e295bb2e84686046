package source

import (
	"cmp"
	"encoding"
	"fmt"
	"net/netip"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/vipgen/vipgen/api/problem"
)

// Decode fills a value, given by pointer, from the document and returns every problem with its
// position. Fields are found by their json tags, and, as in encoding/json, without regard to
// case where no key has the exact name, with a warning. Keys that the Go type does not have are
// ignored.
//
// It takes structs (embedded ones are part of the outer), pointers, slices, maps with text
// keys, text, whole numbers, bools and types with UnmarshalText. Null counts as absent. An
// unquoted number where text is expected is the text as written.
//
// Unreadable and absent fields keep their value; null clears it. Lists and maps are replaced as
// wholes; items of lists keep their index.
func (d *Document) Decode(into any) problem.List { return d.decode("", into, false, nil) }

// DecodeAt is Decode for the value at a path of the document.
func (d *Document) DecodeAt(path string, into any) problem.List {
	return d.decode(path, into, false, nil)
}

// DecodeKnown is Decode that also checks keys that the Go type does not have: known lists the
// fields of each mapping, by its path with "[]" for items of lists. A key in neither is a
// warning, and an error where a field of the Go type was meant. Mappings that known does not
// list are not checked.
func (d *Document) DecodeKnown(into any, known map[string][]string) problem.List {
	return d.decode("", into, false, known)
}

// DecodeStrict is Decode with an error for every unknown field, and for every one in another
// case.
func (d *Document) DecodeStrict(into any) problem.List { return d.decode("", into, true, nil) }

func (d *Document) decode(path string, into any, strict bool, known map[string][]string) problem.List {
	steps, node, found := d.find(path)
	if !found {
		return nil
	}
	dec := &decoder{file: d.File, doc: d, strict: strict, known: known, path: steps}
	if known != nil {
		dec.read = namesBelow(reflect.TypeOf(into).Elem())
	}
	dec.value(node, reflect.ValueOf(into).Elem())
	for i, p := range dec.problems {
		dec.problems[i] = d.original(p)
	}
	return dec.problems
}

type decoder struct {
	file     string
	doc      *Document
	strict   bool
	path     []step
	problems problem.List
	// known lists more fields of mappings, at any depth: see DecodeKnown.
	known map[string][]string
	read  map[string]bool
}

func (d *decoder) report(n *yaml.Node, p problem.Problem) {
	at := place(d.path, n)
	p.File, p.Line, p.Column = d.file, at.Line, at.Column
	p.Severity = cmp.Or(p.Severity, problem.Error)
	if p.Field == "" {
		p.Field = formatPath(d.path)
	}
	d.problems = append(d.problems, p)
}

func (d *decoder) wrongType(n *yaml.Node, v reflect.Value) bool {
	d.report(n, problem.Problem{Code: problem.WrongType, Found: describe(n), Expected: expected(v.Type())})
	return false
}

// value decodes n into v and reports whether v now holds it.
func (d *decoder) value(n *yaml.Node, v reflect.Value) bool {
	t := target(n)
	if isNull(t) {
		return d.null(n, v)
	}
	if v.Kind() == reflect.Pointer {
		return d.pointer(n, v)
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return d.unmarshalText(n, v, u)
	}
	switch v.Kind() {
	case reflect.Struct:
		return d.structure(n, v)
	case reflect.Map:
		return d.mapping(n, v)
	case reflect.Slice:
		return d.list(n, v)
	case reflect.String:
		return d.text(n, v)
	case reflect.Bool:
		return d.boolean(n, v)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return d.integer(n, v)
	}
	panic(fmt.Sprintf("source: cannot decode into %s", v.Type()))
}

// null treats a field as absent and clears its value; an item of a list cannot be absent.
func (d *decoder) null(n *yaml.Node, v reflect.Value) bool {
	if d.inList() || len(d.path) == 0 {
		return d.wrongType(n, v)
	}
	v.SetZero()
	return false
}

func (d *decoder) inList() bool {
	return len(d.path) > 0 && d.path[len(d.path)-1].key == nil
}

func (d *decoder) pointer(n *yaml.Node, v reflect.Value) bool {
	p := reflect.New(v.Type().Elem())
	if !d.value(n, p.Elem()) {
		return false
	}
	v.Set(p)
	return true
}

func (d *decoder) list(n *yaml.Node, v reflect.Value) bool {
	t := target(n)
	if t.Kind != yaml.SequenceNode {
		hint := ""
		if _, err := netip.ParseAddr(t.Value); v.Type().Elem() == typeAddr && t.Kind == yaml.ScalarNode && err == nil {
			hint = "write " + problem.Quote("- "+t.Value) // the field is read, so this is no secret
		}
		d.report(n, problem.Problem{Code: problem.WrongType, Found: describe(n), Expected: expected(v.Type()), Hint: hint})
		return false
	}
	v.Set(reflect.MakeSlice(v.Type(), len(t.Content), len(t.Content)))
	for i, item := range t.Content {
		d.path = append(d.path, step{index: i})
		d.value(item, v.Index(i))
		d.path = d.path[:len(d.path)-1]
	}
	return true
}

func (d *decoder) structure(n *yaml.Node, v reflect.Value) bool {
	t := target(n)
	if t.Kind != yaml.MappingNode {
		return d.wrongType(n, v)
	}
	fields := fieldsOf(v.Type())
	known := func(name string) bool { return d.strict || fields.index[name] != nil }
	list := d.checked(t, known)
	taken := map[string]bool{}
	for _, e := range list {
		taken[e.key.Value] = true
	}
	for _, e := range list {
		name := e.key.Value
		if fields.index[name] == nil {
			meant := fields.folded[strings.ToLower(name)]
			if d.strict || meant == "" || taken[meant] {
				d.unknown(e.key, fields)
				continue
			}
			taken[meant] = true
			d.otherCase(e.key, meant)
			name = meant
		}
		d.path = append(d.path, step{name: name, key: e.key})
		d.value(e.value, fieldByIndex(v, fields.index[name]))
		d.path = d.path[:len(d.path)-1]
	}
	return true
}

// otherCase warns about a key that differs in case.
func (d *decoder) otherCase(key *yaml.Node, meant string) {
	d.path = append(d.path, step{name: key.Value, key: key})
	d.report(key, problem.Problem{Code: problem.UnknownField, Severity: problem.Warning,
		Found: problem.Quote(key.Value), Expected: problem.Quote(meant), Hint: "it was read as that, as OpenShift's installer does"})
	d.path = d.path[:len(d.path)-1]
}

// fieldByIndex is reflect's, allocating embedded pointers.
func fieldByIndex(v reflect.Value, index []int) reflect.Value {
	for i, x := range index {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(x)
	}
	return v
}

func (d *decoder) mapping(n *yaml.Node, v reflect.Value) bool {
	t := target(n)
	if t.Kind != yaml.MappingNode {
		return d.wrongType(n, v)
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, e := range d.checked(t, func(string) bool { return true }) {
		d.path = append(d.path, step{name: e.key.Value, key: e.key})
		item := reflect.New(v.Type().Elem()).Elem()
		if d.value(e.value, item) {
			v.SetMapIndex(reflect.ValueOf(e.key.Value).Convert(v.Type().Key()), item)
		}
		d.path = d.path[:len(d.path)-1]
	}
	return true
}
