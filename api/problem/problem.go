// Package problem describes what is wrong with an input, so that one report names every problem
// at once, each with its position, and tests compare values instead of sentences.
package problem

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/internal/lists"
)

// Severity decides whether a problem stops the work.
type Severity string

const (
	// Error stops the work: nothing is written.
	Error Severity = "error"
	// Warning is reported only.
	Warning Severity = "warning"
)

// Problem is a single finding about an input.
type Problem struct {
	// File is the input as the user named it; "-" is standard input.
	File string `json:"file,omitempty"`
	// Line and Column count from 1; 0 means unknown.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Severity is error or warning.
	Severity Severity `json:"severity"`
	// Code is stable from release to release; see codes.go.
	Code Code `json:"code"`
	// Field is the path in the file, such as "platform.baremetal.apiVIPs[0]".
	Field string `json:"field,omitempty"`
	// Key is the path that checks use, where the file has another one; empty where that is
	// Field.
	Key string `json:"-"`
	// Found is the value in the file, quoted if it is text. It never holds a value of a field
	// that vipgen does not read, so no secret.
	Found string `json:"found,omitempty"`
	// Expected describes a valid value.
	Expected string `json:"expected,omitempty"`
	// Hint is the next step for the user; empty where Expected is enough.
	Hint string `json:"hint,omitempty"`
}

// Path returns the path of the field that checks use.
func (p Problem) Path() string { return cmp.Or(p.Key, p.Field) }

// String returns one line, "file:line:column: severity: field: found X, expected Y (hint)
// [code]", without the unknown parts.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
		}
		b.WriteString(": ")
	}
	b.WriteString(string(p.Severity))
	b.WriteString(": ")
	if p.Field != "" {
		b.WriteString(p.Field)
		b.WriteString(": ")
	}
	switch {
	case p.Found != "" && p.Expected != "":
		fmt.Fprintf(&b, "found %s, expected %s", p.Found, p.Expected)
	case p.Found != "":
		fmt.Fprintf(&b, "found %s", p.Found)
	case p.Expected != "":
		fmt.Fprintf(&b, "expected %s", p.Expected)
	}
	if p.Hint != "" {
		fmt.Fprintf(&b, " (%s)", strings.ReplaceAll(p.Hint, "\n", "; "))
	}
	fmt.Fprintf(&b, " [%s]", p.Code)
	return b.String()
}

// advice returns 1 for a problem that is about valid output, else 0.
func (p Problem) advice() int {
	if p.Code == UnpinnedImage {
		return 1
	}
	return 0
}

// List is a report. It is an error when it holds at least one problem of
// severity error; Err makes that explicit.
type List []Problem

// Error returns the report, one problem per line.
func (l List) Error() string {
	return lists.Join(l, "\n")
}

// Err returns the list if it holds an error, else nil.
func (l List) Err() error {
	if len(l.Errors()) == 0 {
		return nil
	}
	return l
}

// Errors returns the problems that stop the work.
func (l List) Errors() List { return l.only(Error) }

// Warnings returns the problems that do not.
func (l List) Warnings() List { return l.only(Warning) }

func (l List) only(s Severity) List {
	return lists.Filter(l, func(p Problem) bool { return p.Severity == s })
}

// Sort orders the list by file, line, column, field and code, so that a report follows the file
// and is reproducible, and drops duplicates. Advice on the output comes last.
func (l *List) Sort() {
	slices.SortStableFunc(*l, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(a.advice(), b.advice()),
			strings.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column),
			strings.Compare(a.Field, b.Field),
			strings.Compare(string(a.Code), string(b.Code)),
			strings.Compare(a.Found, b.Found),
			strings.Compare(a.Expected, b.Expected),
			strings.Compare(a.Hint, b.Hint),
			strings.Compare(string(a.Severity), string(b.Severity)),
		)
	})
	*l = slices.Compact(*l)
}

// Final returns the list for display: sorted, a template as its only problem in a file, the old
// spellings of a file as one warning, and no advice on output where an error prevents it.
func (l List) Final() List {
	l = slices.Clone(l)
	l.Sort()
	l = l.templatesAlone()
	if l.Err() != nil {
		l = slices.DeleteFunc(l, func(p Problem) bool { return p.advice() > 0 })
	}
	return l.oncePerFile()
}

// templatesAlone keeps the first problem that identifies a file as a template: once it is
// filled in, all others may be gone.
func (l List) templatesAlone() (out List) {
	count := map[string]int{}
	for _, p := range l {
		if p.Code == Template {
			count[p.File]++
		}
	}
	seen := map[string]bool{}
	for _, p := range l {
		n := count[p.File]
		switch {
		case n == 0:
			out = append(out, p)
		case p.Code == Template && !seen[p.File]:
			seen[p.File] = true
			if n > 1 {
				p.Found += fmt.Sprintf(", and %d more", n-1)
			}
			out = append(out, p)
		}
	}
	return out
}

// oncePerFile merges the old spellings of a file into its first warning.
func (l List) oncePerFile() (out List) {
	first := map[string]int{}
	others := map[string][]string{}
	for _, p := range l {
		i, seen := first[p.File]
		switch {
		case p.Code != Deprecated:
			out = append(out, p)
		case !seen:
			first[p.File] = len(out)
			out = append(out, p)
		default:
			others[p.File] = append(others[p.File], fmt.Sprintf("%s on line %d: %s", p.Field, p.Line, p.Expected))
			out[i].Hint = "also " + strings.Join(others[p.File], "; ")
		}
	}
	return out
}
