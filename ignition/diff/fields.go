package diff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/yamllimit"
)

// Field is a difference within a file.
type Field struct {
	// Path is a path such as "spec.groups[api].vips[0]", or the name of a block.
	Path string `json:"path"`
	// What is added or removed, or changed where no value is shown, or empty.
	What string `json:"what,omitempty"`
	// Old and New are values, Lines the difference of a text of several lines.
	Old   string `json:"old,omitempty"`
	New   string `json:"new,omitempty"`
	Lines string `json:"lines,omitempty"`
}

// compareYAML compares documents by field; nil where one of them is not YAML, or where they
// have the same fields.
func compareYAML(before, after string) []Field {
	a, err := yamllimit.ToJSON([]byte(before))
	if err != nil {
		return nil
	}
	b, err := yamllimit.ToJSON([]byte(after))
	if err != nil {
		return nil
	}
	var f fieldDiff
	f.values("", parseJSON(a), parseJSON(b))
	return f.out
}

// parseJSON parses JSON and keeps numbers as written.
func parseJSON(data []byte) any {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	_ = dec.Decode(&v) // the output of a parser
	return v
}

type fieldDiff struct {
	out []Field
	// paths of maps whose values are not shown
	secrets []string
}

func (f *fieldDiff) values(path string, a, b any) {
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			f.maps(path, x, y)
			return
		}
	case []any:
		if y, ok := b.([]any); ok {
			f.lists(path, x, y)
			return
		}
	}
	if inline(a) == inline(b) {
		return
	}
	if s, t, ok := texts(a, b); ok && (strings.Contains(s, "\n") || strings.Contains(t, "\n")) {
		f.out = append(f.out, Field{Path: path, Lines: unified(s, t)})
		return
	}
	f.out = append(f.out, Field{Path: path, Old: inline(shownValue(path, a)), New: inline(shownValue(path, b))})
}

func texts(a, b any) (s, t string, ok bool) {
	s, ok = a.(string)
	t, both := b.(string)
	return s, t, ok && both
}

func (f *fieldDiff) maps(path string, a, b map[string]any) {
	for _, key := range keys(a, b) {
		before, was := a[key]
		after, is := b[key]
		if secret(key, before) || secret(key, after) || slices.Contains(f.secrets, path) {
			f.hidden(join(path, key), before, after, was, is)
			continue
		}
		f.one(join(path, key), before, after, was, is)
	}
}

// hidden adds a difference without values.
func (f *fieldDiff) hidden(path string, a, b any, was, is bool) {
	if was != is || inline(a) != inline(b) {
		f.out = append(f.out, Field{Path: path, What: changeKind(was, is), New: aSecret})
	}
}

func (f *fieldDiff) one(path string, before, after any, was, is bool) {
	switch {
	case !was:
		f.out = append(f.out, Field{Path: path, What: added, New: inline(shownValue(path, after))})
	case !is:
		f.out = append(f.out, Field{Path: path, What: removed, Old: inline(shownValue(path, before))})
	default:
		f.values(path, before, after)
	}
}

// lists compares elements with names by name, others by index.
func (f *fieldDiff) lists(path string, a, b []any) {
	left, named := byName(a)
	right, both := byName(b)
	if named && both {
		for _, name := range keys(left, right) {
			before, was := left[name]
			after, is := right[name]
			f.one(fmt.Sprintf("%s[%s]", path, name), before, after, was, is)
		}
		if len(f.out) == 0 && inline(a) != inline(b) {
			f.out = append(f.out, Field{Path: path, Old: "another order", New: strings.Join(lists.Map(b, nameOf), ", ")})
		}
		return
	}
	for i := range max(len(a), len(b)) {
		var before, after any
		if i < len(a) {
			before = a[i]
		}
		if i < len(b) {
			after = b[i]
		}
		f.one(fmt.Sprintf("%s[%d]", path, i), before, after, i < len(a), i < len(b))
	}
}

// nameKeys are the keys by which Kubernetes merges lists.
var nameKeys = []string{"name", "path", "mountPath", "key"}

func nameOf(v any) string {
	m, ok := v.(map[string]any)
	if !ok {
		return ""
	}
	for _, key := range nameKeys {
		if s, ok := m[key].(string); ok && s != "" {
			return s
		}
	}
	return ""
}

// byName returns elements by name; ok is false unless all have a unique name.
func byName(list []any) (map[string]any, bool) {
	out := map[string]any{}
	for _, v := range list {
		name := nameOf(v)
		if _, twice := out[name]; name == "" || twice {
			return nil, false
		}
		out[name] = v
	}
	return out, len(list) > 0
}

func join(path, key string) string {
	if strings.ContainsAny(key, `.[]"`) || key == "" {
		return fmt.Sprintf("%s[%q]", path, key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func inline(v any) string {
	if s, ok := v.(string); ok && s != "" && !strings.Contains(s, "\n") {
		return s
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// serverFields are set by the API server.
var serverFields = []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink", "ownerReferences"}

// compareObject compares manifests by field, without those that the API server sets.
func compareObject(before, after []byte) []Field {
	var f fieldDiff
	b := ours(after)
	if o, ok := b.(map[string]any); ok && o["kind"] == "Secret" {
		f.secrets = []string{"data", "stringData"}
	}
	f.values("", ours(before), b)
	return f.out
}

func ours(data []byte) any {
	v := parseJSON(data)
	o, ok := v.(map[string]any)
	if !ok {
		return v
	}
	delete(o, "status")
	meta, ok := o["metadata"].(map[string]any)
	if !ok {
		return o
	}
	for _, name := range serverFields {
		delete(meta, name)
	}
	if notes, ok := meta["annotations"].(map[string]any); ok {
		delete(notes, "kubectl.kubernetes.io/last-applied-configuration")
		if len(notes) == 0 {
			delete(meta, "annotations")
		}
	}
	return o
}
