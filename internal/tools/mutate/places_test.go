package main

import (
	"go/format"
	"path/filepath"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

func TestPlaces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pkg", "x.go")
	testkit.WriteFile(t, path, []byte(`package x

func f(a []int, s string) (ok bool) {
	for _, n := range a {
		if n < 3 && !ok {
			continue
		}
		ok = n-1 == len(s+"x")
		log(n)
	}
	return true
}
`))
	f, err := parse(path)
	testkit.Must(t, err)
	var names []string
	for i, m := range f.mutants {
		m.id = i + 1
		names = append(names, m.name())
	}
	testkit.Equal(t, []string{
		`pkg/x.go: without ok = n-1 == len(s+"x")`, `pkg/x.go: if !(n < 3 && !ok)`, `pkg/x.go: n < 3 && → || !ok`, `pkg/x.go: n < → <= 3`,
		`pkg/x.go: without !: !ok`, `pkg/x.go: continue → break`, `pkg/x.go: n-1 == → != len(s+"x")`, `pkg/x.go: n - → + 1`, `pkg/x.go: true inverted`,
	}, names)
	if text, err := format.Source([]byte(f.text())); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
	for _, m := range f.mutants {
		m.invalid = m.id != 6 && m.id != 8
	}
	got, err := format.Source([]byte(f.text()))
	testkit.Must(t, err)
	testkit.Equal(t, `package x

func f(a []int, s string) (ok bool) {
	for _, n := range a {
		if n < 3 && !ok {
			if mutantOn(6) {
				break
			}
			continue
		}
		ok = mutantPick(8, n-1, n+1) == len(s+"x")
		log(n)
	}
	return true
}
`, string(got))
}

func TestEquivalents(t *testing.T) {
	if _, err := readEquivalents(equivalents); err != nil {
		t.Error(err)
	}
	if _, err := readEquivalents("pkg/x.go: true inverted\n"); err == nil {
		t.Error("no reason is one")
	}
}
