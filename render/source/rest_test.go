package source_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/render/source"
)

// What is left of a file around its mistakes is read, with its places; each mistake is
// reported, and nothing that may follow from one.
func TestReadRest(t *testing.T) {
	type config struct {
		A struct {
			B int `json:"b"`
			D struct {
				E int `json:"e"`
			} `json:"d"`
		} `json:"a"`
		F []int `json:"f"`
		G int   `json:"g"`
	}
	for _, tt := range []struct {
		name, in string
		depth    int
		want     string
	}{
		{name: "before and after", in: "g: x\na:\n  b: 1\n c: 2\nf: [y]\n", depth: 1, want: `f:4:2: error: found a line that does not fit the mapping around it, expected YAML (look for wrong indentation, or text after a closing quote, on this line or the one before) [syntax]
f:1:4: error: g: found the text "x", expected a whole number [wrong-type]
f:5:5: error: f[0]: found the text "y", expected a whole number [wrong-type]`},
		{name: "a quote that swallows what comes after it", in: "g: \"1\nf: [\"x\"]\na:\n  b: y\n", depth: 1, want: `f:1:4: error: found quoted text without its closing quote, expected YAML [syntax]
f:2:5: error: f[0]: found the text "x", expected a whole number [wrong-type]
f:4:6: error: a.b: found the text "y", expected a whole number [wrong-type]`},
		{name: "several mistakes", in: "g: [1\nf: {x\na: y\n", depth: 1, want: `f:1:4: error: found a [ or { that is not closed, or lacks a comma, expected YAML [syntax]
f:2:4: error: found a [ or { that is not closed, or lacks a comma, expected YAML [syntax]
f:3:4: error: a: found text, expected a mapping [wrong-type]`},
		{name: "an entry is all or nothing", in: "a:\n  b: x\n  c: [1\n  d:\n    e: y\n", depth: 1, want: `f:3:6: error: found a [ or { that is not closed, or lacks a comma, expected YAML [syntax]`},
		{name: "unless entries of entries count", in: "a:\n  b: x\n  c: [1\n  d:\n    e: y\n", depth: 2, want: `f:3:6: error: found a [ or { that is not closed, or lacks a comma, expected YAML [syntax]
f:2:6: error: a.b: found the text "x", expected a whole number [wrong-type]
f:5:8: error: a.d.e: found the text "y", expected a whole number [wrong-type]`},
		{name: "items of a list keep their numbers", in: "f:\n- {x: [1}\n- y\n", depth: 2, want: `f:2:3: error: found a [ or { that is not closed, or lacks a comma, expected YAML [syntax]`},
		{name: "an anchor may be in the mistake", in: "g: [&x 1\nf: [*x]\na: y\n", depth: 1, want: `f:1:4: error: found a [ or { that is not closed, or lacks a comma, expected YAML [syntax]`},
		{name: "a template is no YAML on purpose", in: "g: [1\nf: {{ x }}\na: y\n", depth: 1, want: `f:2:4: error: found a template of Jinja, Ansible or Helm, expected a finished file (give the file that it renders to) [template]`},
		{name: "what passwords and comments hold is no template", in: "# <EOF> ${x}\np: \"pa$word<me>${x}\"\ng: [1\nq: {a: b\n", depth: 1, want: `f:3:4: error: found a [ or { that is not closed, or lacks a comma, expected YAML [syntax]
f:4:4: error: found a [ or { that is not closed, or lacks a comma, expected YAML [syntax]`},
		{name: "but on the line of the mistake it is", in: "p: \"pa$word\"\nf: [${x}, 1]\n", depth: 1, want: `f:2:5: error: found a shell variable, expected a finished file (fill it in, as with envsubst) [template]`},
		{name: "text is no mapping", in: "x\ny: [\n", depth: 1, want: `f:2:2: error: found a second ": " where a value is, or wrong indentation, expected YAML (quote text that contains ": ") [syntax]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			doc, list := source.Parse("f", []byte(tt.in))
			if doc != nil {
				t.Fatal("the file is fine")
			}
			list = append(list, source.ReadRest("f", []byte(tt.in), tt.depth, func(rest *source.Document) problem.List {
				return rest.Decode(new(config))
			})...)
			if d := cmp.Diff(tt.want, list.Error()); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

// Nobody knows what is missing where a mistake is.
func TestSound(t *testing.T) {
	doc, _ := source.Rest("f", []byte("a: [1\nb: 2\n"), 1)
	list := problem.List{
		{Severity: problem.Error, Field: "a", Code: problem.MissingField},
		{Severity: problem.Error, Field: "b", Code: problem.BadValue},
		{Severity: problem.Warning, Field: "b", Code: problem.Deprecated},
	}
	if d := cmp.Diff(list[1:2], doc.Sound(list)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// A document of a stream that is no YAML leaves the others.
func TestParseEach(t *testing.T) {
	const in = "kind: A\n---\nkind: [\n--- # third\nkind: B\n---\nkind: \"\n"
	docs, list := source.ParseEach("f", []byte(in))
	const want = `f:3:7: error: found a [ or { that is not closed, or lacks a value, expected YAML [syntax]
f:7:7: error: found quoted text without its closing quote, expected YAML [syntax]`
	if d := cmp.Diff(want, list.Error()); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	var kinds []string
	for _, d := range docs {
		kinds = append(kinds, d.Text("kind"))
	}
	if d := cmp.Diff([]string{"A", "B"}, kinds); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if line, column := docs[1].Position("kind"); line != 5 || column != 7 {
		t.Errorf("the third document is at %d:%d", line, column)
	}
}
