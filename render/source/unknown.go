package source

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/internal/lazy"
)

func (d *decoder) unknown(key *yaml.Node, fields *structFields) {
	name := key.Value
	meant, severity := fields.folded[strings.ToLower(name)], problem.Warning
	if d.strict {
		severity = problem.Error
		if meant == "" {
			meant = suggest(name, fields.names)
		}
	}
	p := problem.Problem{Code: problem.UnknownField, Severity: severity}
	path := append(d.path, step{name: name, key: key})
	known, checked := d.known[listItem().ReplaceAllString(formatPath(d.path), "[]")]
	switch {
	case meant != "":
		p.Found, p.Hint = problem.Quote(name), fmt.Sprintf("did you mean %q?", meant)
	case d.strict:
		p.Found, p.Expected = problem.Quote(name), "one of "+strings.Join(fields.names, ", ")
	case checked && !slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, name) }):
		if p = d.foreign(name, fields, known); p.Hint == "" {
			path = d.path // the key may be a secret: it is not shown
		}
	default:
		return
	}
	before := d.path
	d.path = path
	d.report(key, p)
	d.path = before
}

// listItem matches the index in a path.
var listItem = lazy.Regexp(`\[\d+\]`)

// foreign returns the problem of a key that neither the struct nor the known fields of its
// mapping have. A misspelled or misplaced field would be lost: an error where it is one that is
// read.
func (d *decoder) foreign(name string, fields *structFields, known []string) problem.Problem {
	p := problem.Problem{Code: problem.UnknownField, Severity: problem.Warning, Found: "an unknown field", Expected: "a field that OpenShift's installer has"}
	meant := suggest(name, slices.Concat(fields.names, known))
	at := d.mappingWith(name)
	switch {
	case at != "":
		p.Found, p.Hint = problem.Quote(name), "it belongs under "+at
		if d.read[name] {
			p.Severity = problem.Error
		}
	case meant != "":
		p.Found, p.Hint = problem.Quote(name), fmt.Sprintf("did you mean %q?", meant)
		if fields.index[meant] != nil {
			p.Severity = problem.Error
		}
	}
	return p
}

// mappingWith returns the only mapping with a field of that name that is not an item of a list:
// first of those in the document, then of all; "" for none, or for several.
func (d *decoder) mappingWith(name string) string {
	var here, all []string
	for at, names := range d.known {
		if at == "" || strings.HasSuffix(at, "]") || !slices.Contains(names, name) {
			continue
		}
		all = append(all, at)
		if d.doc.Has(at) {
			here = append(here, at)
		}
	}
	switch {
	case len(here) == 1:
		return here[0]
	case len(all) == 1:
		return all[0]
	}
	return ""
}

func namesBelow(t reflect.Type) map[string]bool {
	names := map[string]bool{}
	var walk func(reflect.Type)
	walk = func(t reflect.Type) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			return
		}
		for name, index := range fieldsOf(t).index {
			names[name] = true
			walk(t.FieldByIndex(index).Type)
		}
	}
	walk(t)
	return names
}
