package source_test

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/render/source"
)

type level string

func (l *level) UnmarshalText(text []byte) error {
	switch s := string(text); s {
	case "low", "high":
		*l = level(s)
		return nil
	}
	return errLevel{}
}

type errLevel struct{}

func (errLevel) Error() string { return "low or high" }

type common struct {
	Kind string `json:"kind"`
}

type host struct {
	Name    string     `json:"name"`
	Address netip.Addr `json:"address"`
}

type sample struct {
	common  `json:",inline"`
	Version string            `json:"version"`
	Count   *int              `json:"count"`
	Small   uint8             `json:"small"`
	On      bool              `json:"on"`
	VIPs    []netip.Addr      `json:"apiVIPs"`
	Network netip.Prefix      `json:"network"`
	Level   level             `json:"level"`
	Hosts   []host            `json:"hosts"`
	Main    *host             `json:"main"`
	Labels  map[string]string `json:"labels"`
	Ignored string            `json:"-"`
}

func lines(l problem.List) string {
	if len(l) == 0 {
		return ""
	}
	return l.Error() + "\n"
}

func pointer[T any](v T) *T { return &v }

var compare = cmp.Options{cmp.AllowUnexported(sample{}), cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })}

func TestDecodeValues(t *testing.T) {
	for _, test := range []struct {
		name, in string
		want     sample
	}{
		{"text", "version: v1\n", sample{Version: "v1"}},
		{"quoted bool as text", "version: 'yes'\n", sample{Version: "yes"}},
		{"integers", "count: 3\nsmall: 0xff\n", sample{Count: pointer(3), Small: 255}},
		{"bool", "on: true\n", sample{On: true}},
		{"bool of YAML 1.1", "on: yes\n", sample{On: true}},
		{"null is absent", "count: null\nmain: ~\nversion:\nhosts:\n", sample{}},
		{"empty address is absent", "main: {address: ''}\n", sample{Main: &host{}}},
		{"addresses", "apiVIPs: [10.0.0.1, 'fd00::1']\n", sample{VIPs: []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")}}},
		{"own type", "level: low\n", sample{Level: "low"}},
		{"map", "labels: {a: b, 1: 2}\n", sample{Labels: map[string]string{"a": "b", "1": "2"}}},
		{"alias", "main: &h {name: a}\nhosts: [*h, *h]\n", sample{Main: &host{Name: "a"}, Hosts: []host{{Name: "a"}, {Name: "a"}}}},
		{"merge", "main: &h {name: a, address: 10.0.0.1}\nhosts:\n- <<: *h\n  name: b\n", sample{
			Main:  &host{"a", netip.MustParseAddr("10.0.0.1")},
			Hosts: []host{{"b", netip.MustParseAddr("10.0.0.1")}}}},
		{"merge of several", "hosts:\n- <<: [{name: a}, {name: b, address: 10.0.0.2}]\n", sample{Hosts: []host{{"a", netip.MustParseAddr("10.0.0.2")}}}},
		{"carriage returns", "version: a\r\ncount: 1\r\n", sample{Version: "a", Count: pointer(1)}},
		{"tab before a comment", "version: a\t# why\n", sample{Version: "a"}},
		{"marks", "---\nversion: a\n...\n---\n", sample{Version: "a"}},
		{"ignored field", "Ignored: a\n-: b\n", sample{}},
		{"unknown fields", "secret: [[[]]]\n", sample{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got sample
			testkit.Empty(t, parse(t, test.in).Decode(&got))
			testkit.Equal(t, test.want, got, compare)
		})
	}
}

// parse parses a file that has no problem.
func parse(t *testing.T, text string) *source.Document {
	t.Helper()
	doc, problems := source.Parse("f.yaml", []byte(text))
	testkit.Empty(t, problems)
	return doc
}

func TestDecodeProblems(t *testing.T) {
	for _, test := range []struct{ name, in, want string }{
		{"list for text", "version: [a]\n", "f.yaml:1:1: error: version: found a list, expected text [wrong-type]\n"},
		{"mapping for list", "apiVIPs: {a: b}\n", "f.yaml:1:1: error: apiVIPs: found a mapping, expected a list [wrong-type]\n"},
		{"text for list", "apiVIPs: 10.0.0.1\n", "f.yaml:1:10: error: apiVIPs: found text, expected a list (write \"- 10.0.0.1\") [wrong-type]\n"},
		{"number for map", "labels: 3\n", "f.yaml:1:9: error: labels: found a number, expected a mapping [wrong-type]\n"},
		{"text for number", "count: three\n", "f.yaml:1:8: error: count: found the text \"three\", expected a whole number [wrong-type]\n"},
		{"too large", "small: 256\n", "f.yaml:1:8: error: small: found \"256\", expected a whole number from 0 to 255 [bad-value]\n"},
		{"negative", "small: -1\n", "f.yaml:1:8: error: small: found \"-1\", expected a whole number from 0 to 255 [bad-value]\n"},
		{"beyond 64 bits", "count: 99999999999999999999\n",
			"f.yaml:1:8: error: count: found the number \"99999999999999999999\", expected a whole number [wrong-type]\n"},
		{"text for bool", "on: maybe\n", "f.yaml:1:5: error: on: found the text \"maybe\", expected true or false [wrong-type]\n"},
		{"bool for text", "version: no\n", "f.yaml:1:10: error: version: found the bool \"no\", expected text (quote it if it is text: \"no\") [wrong-type]\n"},
		{"tag", "version: !vault abc\n", "f.yaml:1:10: error: version: found a value with a tag, expected text [wrong-type]\n"},
		{"bad address", "apiVIPs:\n- 10.0.0.1\n- 10.0.0.256\n", "f.yaml:3:3: error: apiVIPs[1]: found \"10.0.0.256\", expected an IP address [bad-address]\n"},
		{"bool address", "main: {address: true}\n",
			"f.yaml:1:17: error: main.address: found the bool \"true\", expected an IP address (quote it if it is text: \"true\") [wrong-type]\n"},
		{"null item", "apiVIPs:\n-\n", "f.yaml:2:2: error: apiVIPs[0]: found nothing, expected an IP address [wrong-type]\n"},
		{"bad network", "network: 10.0.0.0\n", "f.yaml:1:10: error: network: found \"10.0.0.0\", expected a network, such as 192.0.2.0/24 [bad-network]\n"},
		{"bad own type", "level: middle\n", "f.yaml:1:8: error: level: found \"middle\", expected low or high [bad-value]\n"},
		{"hostile text", "level: \"a\\nb\\e[31m\\u202e\"\n", "f.yaml:1:8: error: level: found \"a\\nb\\x1b[31m\\u202e\", expected low or high [bad-value]\n"},
		{"long text", "level: " + strings.Repeat("ü", 90) + "\n",
			"f.yaml:1:8: error: level: found \"" + strings.Repeat("ü", 80) + "\"..., expected low or high [bad-value]\n"},
		{"map value", "labels:\n  example.com/rack: []\n", "f.yaml:2:3: error: labels[\"example.com/rack\"]: found a list, expected text [wrong-type]\n"},
		{"duplicate key of a map", "labels:\n  a: x\n  a: y\n",
			"f.yaml:3:3: error: labels.a: found \"a\" for the second time (first on line 2) [duplicate-key]\n"},
		{"duplicate unknown key", "main:\n  hunter2: a\n  hunter2: b\n",
			"f.yaml:3:3: error: main: found a key for the second time (first on line 2) [duplicate-key]\n"},
		{"duplicate key where nobody looks", "other:\n  a: 1\n  a: 2\n", ""},
		{"other case", "main:\n  Address: 10.0.0.1\n",
			"f.yaml:2:3: warning: main.Address: found \"Address\", expected \"address\" (it was read as that, as OpenShift's installer does) [unknown-field]\n"},
		{"merge of text", "main:\n  <<: hunter2\n", "f.yaml:2:7: error: main: found text, expected a mapping, or a list of mappings, to merge [wrong-type]\n"},
		{"merge of nothing at the end of the file", "main:\n  ? <<",
			"f.yaml:2:5: error: main: found nothing, expected a mapping, or a list of mappings, to merge [wrong-type]\n"},
		{"problem behind an alias", "x: &a\n  address: q\nhosts:\n- *a\n",
			"f.yaml:2:12: error: hosts[0].address: found \"q\", expected an IP address [bad-address]\n"},
		{"not a mapping", "- a\n", "f.yaml:1:1: error: found a list, expected a mapping [wrong-type]\n"},
		{"every problem", "count: a\nhosts:\n- address: b\n- address: c\n",
			"f.yaml:1:8: error: count: found the text \"a\", expected a whole number [wrong-type]\n" +
				"f.yaml:3:12: error: hosts[0].address: found \"b\", expected an IP address [bad-address]\n" +
				"f.yaml:4:12: error: hosts[1].address: found \"c\", expected an IP address [bad-address]\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			testkit.Equal(t, test.want, lines(parse(t, test.in).Decode(&sample{})))
		})
	}
}

// Overlays set mappings without keys as well, and a later one replaces values of an earlier one.
func TestOverlay(t *testing.T) {
	doc := parse(t, `over: '{"main": {}, "labels": {"a": "b"}}'
again: '{"labels": {"a": "c"}}'
list: '[1]'
broken: '{'
`)
	v := source.NewView(doc, "")
	var got sample
	testkit.Empty(t, slices.Concat(v.Overlay(doc, "over"), v.Overlay(doc, "again"), v.Document().Decode(&got)))
	testkit.Equal(t, sample{Main: &host{}, Labels: map[string]string{"a": "c"}}, got, compare)
	for _, field := range []string{"list", "broken"} {
		if list := v.Overlay(doc, field); len(list) != 1 || list[0].Field != field || list[0].Code != problem.Syntax {
			t.Errorf("%s: %v", field, list)
		}
	}
}

func TestDecodeStrict(t *testing.T) {
	for _, test := range []struct{ name, in, want string }{
		{"known", "version: a\nkind: b\n", ""},
		{"typing mistake", "vresion: hunter2\n", "f.yaml:1:1: error: vresion: found \"vresion\" (did you mean \"version\"?) [unknown-field]\n"},
		{"other case", "apivips: []\n", "f.yaml:1:1: error: apivips: found \"apivips\" (did you mean \"apiVIPs\"?) [unknown-field]\n"},
		{"nothing near", "main:\n  pullSecret: hunter2\n",
			"f.yaml:2:3: error: main.pullSecret: found \"pullSecret\", expected one of address, name [unknown-field]\n"},
		{"strange key", "main:\n  \"a\\nb\": hunter2\n",
			"f.yaml:2:3: error: main[\"a\\nb\"]: found \"a\\nb\", expected one of address, name [unknown-field]\n"},
		{"empty key", "main: {'': a}\n", "f.yaml:1:8: error: main[\"\"]: found \"\", expected one of address, name [unknown-field]\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			testkit.Equal(t, test.want, lines(parse(t, test.in).DecodeStrict(&sample{})))
		})
	}
}

func TestPosition(t *testing.T) {
	doc := parse(t, `
top:
  list:
  - name: a
    empty:
  - name: b
  flow: [1, 2]
  "odd key": &odd
    deep: x
alias: *odd
merged:
  <<: *odd
`)
	for _, test := range []struct {
		field        string
		line, column int
		has          bool
	}{
		{"", 2, 1, true}, {"top", 2, 1, true}, {"top.list", 3, 3, true}, {"top.list[0]", 4, 5, true},
		{"top.list[0].name", 4, 11, true}, {"top.list[0].empty", 5, 5, false}, {"top.list[1].name", 6, 11, true},
		{"top.list[2].name", 3, 3, false}, {"top.list[x]", 3, 3, true}, {"top.list.name", 3, 3, false},
		{"top.flow[1]", 7, 13, true}, {"top.missing.deeper", 2, 1, false}, {`top["odd key"].deep`, 9, 11, true},
		{"alias.deep", 9, 11, true}, {"merged.deep", 9, 11, true}, {"missing", 2, 1, false},
	} {
		line, column := doc.Position(test.field)
		testkit.Equal(testkit.In(t, test.field), [2]int{test.line, test.column}, [2]int{line, column})
		testkit.Equal(testkit.In(t, test.field), test.has, doc.Has(test.field))
	}
}

func TestLocate(t *testing.T) {
	doc := parse(t, "a:\n  b: c\n")
	in := problem.List{
		{Severity: problem.Error, Code: problem.BadName, Field: "a.b"},
		{Severity: problem.Error, Code: problem.BadName, Field: "a.b", File: "g.yaml", Line: 9, Column: 9},
	}
	want := "f.yaml:2:6: error: a.b:  [bad-name]\ng.yaml:9:9: error: a.b:  [bad-name]\n"
	testkit.Equal(t, want, lines(doc.Locate(in)))
	testkit.Equal(testkit.In(t, "the argument of Locate"), 0, in[0].Line)
}

func TestDecodeKnown(t *testing.T) {
	type inner struct {
		Name string `json:"name"`
	}
	type outer struct {
		Inner inner   `json:"inner"`
		List  []inner `json:"list"`
		Free  inner   `json:"free"`
	}
	known := map[string][]string{"": {"inner", "list", "free", "other"}, "inner": {"name", "colour"}, "list[]": {"name"}}
	for _, tt := range []struct{ what, in, want string }{
		{"known", "{inner: {name: a, colour: b}, other: {x: y}}", ""},
		{"known in another case", "{inner: {name: a, Colour: b}}", ""},
		{"left alone", "{free: {naem: a}}", ""},
		{"of a field that is read", "{inner: {nane: a}}",
			`f.yaml:1:10: error: inner.nane: found "nane", expected a field that OpenShift's installer has (did you mean "name"?) [unknown-field]`},
		{"of another", "{inner: {color: a}}",
			`f.yaml:1:10: warning: inner.color: found "color", expected a field that OpenShift's installer has (did you mean "colour"?) [unknown-field]`},
		{"in a list", "{list: [{name: a}, {nane: a}]}",
			`f.yaml:1:21: error: list[1].nane: found "nane", expected a field that OpenShift's installer has (did you mean "name"?) [unknown-field]`},
		{"of the wrong mapping, read", "{inner: {}, name: a}",
			`f.yaml:1:13: error: name: found "name", expected a field that OpenShift's installer has (it belongs under inner) [unknown-field]`},
		{"of the wrong mapping, not read", "{colour: a}",
			`f.yaml:1:2: warning: colour: found "colour", expected a field that OpenShift's installer has (it belongs under inner) [unknown-field]`},
		{"a secret", "{inner: {hunter2: a}}",
			`f.yaml:1:10: warning: inner: found an unknown field, expected a field that OpenShift's installer has [unknown-field]`},
	} {
		t.Run(tt.what, func(t *testing.T) {
			var into outer
			testkit.Equal(t, tt.want, parse(t, tt.in).DecodeKnown(&into, known).Error())
		})
	}
}

// FuzzParse feeds any bytes to Parse and both decoders: none panics, and every problem has a
// position in the file.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "a: b\n---\nc: d\n", "version: 4.20\ncount: 3\n", "apiVIPs: [10.0.0.1, x]\n",
		"main: &a {name: b}\nhosts: [*a, {<<: *a, address: 1}]\n", "hosts:\n- name: a\n name: b\n",
		"labels: {\"a.b/c\": d}\n", "on: yes\nsmall: 0o7\n", "? [a]\n: b\n", "<<: [x]\n", "? <<", bomb(),
		"version: !!binary aGk=\nlevel: \"\\u202e\"\n", "a: |\n  b\n\tc\n", "\ufeffa: 'b\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, problems := source.Parse("f.yaml", data)
		if doc != nil {
			problems = doc.Decode(&sample{})
			problems = append(problems, doc.DecodeStrict(&sample{})...)
		}
		last := lineCount(data)
		for _, p := range problems {
			if p.Line < 1 || p.Line > last || p.Column < 1 || p.File != "f.yaml" || p.Code == "" {
				t.Errorf("a file of %d lines has the problem %q", last, p)
			}
			checkField(t, doc, p)
		}
	})
}

// lineCount counts line breaks as defined by YAML 1.1.
func lineCount(data []byte) int {
	count := 1
	for _, end := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029"} {
		count += bytes.Count(data, []byte(end))
	}
	return count
}

// checkField checks that the field of a problem can be found again.
func checkField(t *testing.T, doc *source.Document, p problem.Problem) {
	if doc == nil {
		return
	}
	if line, _ := doc.Position(p.Field); line < 1 {
		t.Errorf("no position for %q", p.Field)
	}
}
