// Package outputs generates JSON Schemas of commands' output from Go types, and validates
// output.
package outputs

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/invopop/jsonschema"
	validator "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

const (
	module = "github.com/vipgen/vipgen/"
	draft  = "http://json-schema.org/draft-07/schema#"
)

// Verify compares the schema of a kind, generated from its type, with a file, or writes the
// file. pkg is the folder of the test's package in the module.
func Verify(t *testing.T, pkg, file, kind string, of reflect.Type, update bool) {
	t.Helper()
	testkit.Kept(t, file, schema(t, pkg, kind, of), update)
}

func schema(t *testing.T, pkg, kind string, of reflect.Type) []byte {
	r := &jsonschema.Reflector{DoNotReference: true, AllowAdditionalProperties: true, Mapper: scalars}
	for name := range packages(of, map[reflect.Type]bool{}) {
		at, err := filepath.Rel(pkg, strings.TrimPrefix(name, module))
		testkit.Must(t, err)
		testkit.Must(t, r.AddGoComments(module+pkg, at, jsonschema.WithFullComment()))
	}
	s := r.ReflectFromType(of)
	s.Version, s.ID, s.Title = draft, "", kind
	if s.Properties == nil {
		t.Fatalf("%v is not a struct", of)
	}
	for _, constant := range [][2]string{{"kind", kind}, {"apiVersion", v1alpha1.APIVersion}} {
		if _, taken := s.Properties.Get(constant[0]); taken {
			t.Fatalf("%v has a field %s of its own", of, constant[0])
		}
		s.Properties.Set(constant[0], &jsonschema.Schema{Const: constant[1]})
		testkit.Must(t, s.Properties.MoveToFront(constant[0]))
	}
	s.Required = append([]string{"apiVersion", "kind"}, s.Required...)
	plain(s)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	testkit.Must(t, enc.Encode(s))
	// The library escapes them regardless of the encoder's settings.
	return []byte(strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(b.String()))
}

// packages returns the project's packages with types below a type.
func packages(t reflect.Type, seen map[reflect.Type]bool) map[string]bool {
	out := map[string]bool{}
	if seen[t] {
		return out
	}
	seen[t] = true
	if strings.HasPrefix(t.PkgPath(), module) {
		out[t.PkgPath()] = true
	}
	below := func(t reflect.Type) {
		for name := range packages(t, seen) {
			out[name] = true
		}
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		below(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			below(f.Type)
		}
	}
	return out
}

// scalars returns the schema of types that are text or numbers in JSON.
func scalars(t reflect.Type) *jsonschema.Schema {
	text := reflect.TypeFor[encoding.TextMarshaler]()
	values := reflect.Zero(t).MethodByName("Values")
	switch {
	case t == reflect.TypeFor[time.Time]():
		return &jsonschema.Schema{Type: "string", Format: "date-time"}
	case t.Kind() == reflect.String && values.IsValid():
		s := &jsonschema.Schema{Type: "string"}
		for _, v := range values.Call(nil)[0].Seq2() {
			s.Enum = append(s.Enum, v.String())
		}
		return s
	case t.Implements(text):
		return &jsonschema.Schema{Type: "string"}
	case recursive(t, t, map[reflect.Type]bool{}):
		return &jsonschema.Schema{Type: "object"}
	}
	return nil
}

// recursive reports whether a struct contains itself.
func recursive(t, of reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return t.Elem() == of && of.Kind() == reflect.Struct || recursive(t.Elem(), of, seen)
	case reflect.Struct:
		for f := range t.Fields() {
			if recursive(f.Type, of, seen) {
				return true
			}
		}
	}
	return false
}

// plain unwraps comments, and removes those of elements: they are about Go types.
func plain(s *jsonschema.Schema) {
	if s == nil || s == jsonschema.TrueSchema || s == jsonschema.FalseSchema {
		return
	}
	s.Description = strings.Join(strings.Fields(s.Description), " ")
	if plain(s.Items); s.Items != nil {
		s.Items.Description = ""
	}
	plain(s.AdditionalProperties)
	if s.Properties != nil {
		for p := s.Properties.Oldest(); p != nil; p = p.Next() {
			plain(p.Value)
		}
	}
}

// Check returns how printed JSON violates the schema of its kind. schemaOf returns the schema
// of a kind, or nil.
func Check(printed []byte, schemaOf func(kind string) []byte) error {
	var head struct{ APIVersion, Kind string }
	if err := json.Unmarshal(printed, &head); err != nil {
		return err
	}
	if head.Kind == "List" {
		return nil // Kubernetes objects
	}
	text := schemaOf(head.Kind)
	if text == nil {
		return fmt.Errorf("no schema of kind %q", head.Kind)
	}
	schema, err := validator.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	c := validator.NewCompiler()
	if err := c.AddResource("schema.json", schema); err != nil {
		return err
	}
	compiled, err := c.Compile("schema.json")
	if err != nil {
		return err
	}
	value, err := validator.UnmarshalJSON(bytes.NewReader(printed))
	if err != nil {
		return err
	}
	return compiled.Validate(value)
}
