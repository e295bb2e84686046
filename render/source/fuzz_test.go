package source_test

import (
	"bytes"
	"testing"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/render/source"
)

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
