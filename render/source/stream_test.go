package source_test

import (
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/render/source"
)

// named is decoded from the objects of a stream.
type named struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
}

// TestParseAll: objects are returned one by one, each with the lines of the file.
func TestParseAll(t *testing.T) {
	for _, tt := range []struct {
		what, text string
		names      string
		lines      []int
	}{
		{"nothing", "", "", nil},
		{"one", "metadata:\n  name: a\n", "a", []int{2}},
		{"a stream with an empty document", "metadata: {name: a}\n---\n---\n# b\nmetadata: {name: b}\n...\n", "a b", []int{1, 5}},
		{"a list", "kind: List\nitems:\n- metadata: {name: a}\n- metadata: {name: b}\n", "a b", []int{3, 4}},
		{"a list of lists, and text", "kind: PodList\nitems:\n- kind: List\n  items:\n  - metadata: {name: a}\n- text\n- metadata: {name: b}\n", "a b", []int{5, 7}},
		{"JSON", "{\"kind\": \"List\", \"items\": [\n{\"metadata\": {\"name\": \"a\"}},\n{\"metadata\": {\"name\": \"b\"}}]}\n", "a b", []int{2, 3}},
		{"an alias", "kind: List\nx: &a {metadata: {name: a}}\nitems: [*a, *a]\n", "a a", []int{2, 2}},
		{"items that are none", "kind: List\nitems: text\n", "", nil},
		{"text", "text\n---\n- a\n", "", nil},
	} {
		docs, list := source.ParseAll("f.yaml", []byte(tt.text))
		testkit.Empty(testkit.In(t, tt.what), list)
		var names []string
		for i, d := range docs {
			var n named
			testkit.Empty(testkit.In(t, tt.what), d.Decode(&n))
			names = append(names, n.Metadata.Name)
			if line, _ := d.Position("metadata.name"); i < len(tt.lines) && line != tt.lines[i] {
				t.Errorf("%s: %s on line %d, want %d", tt.what, n.Metadata.Name, line, tt.lines[i])
			}
			if _, err := d.JSON(); err != nil {
				t.Errorf("%s: %v", tt.what, err)
			}
		}
		testkit.Equal(testkit.In(t, tt.what), tt.names, strings.Join(names, " "))
	}
}

func TestParseAllRefuses(t *testing.T) {
	for what, tt := range map[string]struct{ text, want string }{
		"no YAML":              {"a: b\n---\na: [\n", "f.yaml:3:4: error: "},
		"a control character":  {"a: b\nc: \x01\n", "f.yaml:2:4: error: found the control character \\x01"},
		"an alias to itself":   {"a: &a [*a]\n", "f.yaml:1:8: error: "},
		"nesting without end":  {strings.Repeat("[", 200), "f.yaml:1:"},
		"a file that is huge":  {strings.Repeat(" ", source.MaxStream+1), "f.yaml:1:1: error: found 67108865 bytes"},
		"a list within itself": {"&a {kind: List, items: [*a]}\n", "f.yaml:1:25: error: "},
	} {
		docs, list := source.ParseAll("f.yaml", []byte(tt.text))
		if docs != nil || list.Err() == nil || !strings.HasPrefix(list.Error(), tt.want) {
			t.Errorf("%s: %v, %d documents", what, list, len(docs))
		}
	}
}

// FuzzParseAll: nothing panics, problems have a position in the file, and each object converts
// to JSON or returns an error.
func FuzzParseAll(f *testing.F) {
	for _, seed := range []string{"", "a: b\n---\nc: d\n", "kind: List\nitems: [{a: b}, 1]\n", "{\"kind\":\"List\",\"items\":[{}]}", bomb(), "? {a: b}\n: c\n", "a: .nan\nb: 2001-01-01\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		docs, problems := source.ParseAll("f.yaml", data)
		for _, p := range problems {
			if p.Line < 1 || p.Line > lineCount(data) || p.Column < 1 {
				t.Errorf("the problem %q", p)
			}
		}
		for _, d := range docs {
			d.Decode(&sample{})
			if line, _ := d.Position("kind"); line < 1 || line > lineCount(data) {
				t.Errorf("kind on line %d", line)
			}
			_, _ = d.JSON()
		}
	})
}
