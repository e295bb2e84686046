package problem

import (
	"errors"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

func TestString(t *testing.T) {
	for _, tt := range []struct {
		in   Problem
		want string
	}{
		{Problem{File: "a.yaml", Line: 3, Column: 5, Severity: Error, Code: BadName, Field: "metadata.name", Found: `"A"`, Expected: "lower case", Hint: "call it a"},
			`a.yaml:3:5: error: metadata.name: found "A", expected lower case (call it a) [bad-name]`},
		{Problem{File: "-", Severity: Warning, Code: Deprecated, Found: "an old spelling"}, "-: warning: found an old spelling [deprecated]"},
		{Problem{Severity: Error, Code: MissingField, Field: "a", Expected: "b"}, "error: a: expected b [missing-field]"},
	} {
		testkit.Equal(t, tt.want, tt.in.String())
	}
}

func TestSort(t *testing.T) {
	at := func(file string, line, column int, field string, code Code) Problem {
		return Problem{File: file, Line: line, Column: column, Field: field, Code: code, Severity: Error}
	}
	list := List{
		at("b", 1, 1, "a", Syntax),
		at("a", 10, 1, "a", Syntax),
		at("a", 2, 7, "a", Syntax),
		at("a", 2, 1, "b", Syntax),
		at("a", 2, 1, "a", WrongType),
		at("a", 2, 1, "a", Syntax),
		at("b", 1, 1, "a", Syntax),
		at("", 0, 0, "z", Syntax),
	}
	list.Sort()
	want := List{
		at("", 0, 0, "z", Syntax),
		at("a", 2, 1, "a", Syntax),
		at("a", 2, 1, "a", WrongType),
		at("a", 2, 1, "b", Syntax),
		at("a", 2, 7, "a", Syntax),
		at("a", 10, 1, "a", Syntax),
		at("b", 1, 1, "a", Syntax),
	}
	testkit.Equal(t, want, list)
}

func TestErr(t *testing.T) {
	warning, failure := Problem{Severity: Warning, Code: Deprecated}, Problem{Severity: Error, Code: Syntax}
	for _, list := range []List{nil, {}, {warning}} {
		testkit.Check(testkit.In(t, list), list.Err())
	}
	list := List{warning, failure}
	var got List
	if err := list.Err(); !errors.As(err, &got) || len(got) != 2 {
		t.Errorf("error %v", err)
	}
	testkit.Equal(t, "warning:  [deprecated]\nerror:  [syntax]", list.Error())
	testkit.Equal(t, List{warning}, list.Warnings())
}

// A file that is a template has no other problems; other files keep theirs.
func TestFinalTemplatesAlone(t *testing.T) {
	at := func(file string, line int, code Code, found string) Problem {
		return Problem{File: file, Line: line, Severity: Error, Code: code, Found: found}
	}
	warning := at("a", 9, Deprecated, "an old spelling")
	warning.Severity = Warning
	list := List{at("a", 4, Template, "<y>"), at("a", 1, BadName, "A"), at("a", 2, Template, "<x>"), warning, at("b", 1, BadName, "B"), at("c", 1, Template, "<z>")}
	want := List{at("a", 2, Template, "<x>, and 1 more"), at("b", 1, BadName, "B"), at("c", 1, Template, "<z>")}
	testkit.Equal(t, want, list.Final())
	testkit.Equal(t, want, want.Final())
}
