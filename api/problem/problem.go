// Package problem says what is wrong with an input, so that one report can
// name every problem at once, each with its place, and tests can compare
// values instead of sentences.
package problem

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Severity tells whether a problem stops the work.
type Severity string

const (
	// Error stops the work: nothing is written.
	Error Severity = "error"
	// Warning is reported and the work goes on.
	Warning Severity = "warning"
)

// Problem is one thing that is wrong with an input.
type Problem struct {
	// File is the input as the user named it; "-" is standard input.
	File string `json:"file,omitempty"`
	// Line and Column count from 1; 0 means that the place is not known.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Severity is error or warning.
	Severity Severity `json:"severity"`
	// Code is stable from release to release; see codes.go.
	Code Code `json:"code"`
	// Field is the path in the file, such as "platform.baremetal.apiVIPs[0]".
	Field string `json:"field,omitempty"`
	// Key is the path that checks know the field by, where the file has another for
	// it; empty where that is Field.
	Key string `json:"-"`
	// Found is what stands in the file, quoted where it is text. It never
	// holds a value of a field that vipgen does not read, so no secret.
	Found string `json:"found,omitempty"`
	// Expected says what should stand there.
	Expected string `json:"expected,omitempty"`
	// Hint says what to do next; empty where Expected says it all.
	Hint string `json:"hint,omitempty"`
}

// Path is the field as checks know it.
func (p Problem) Path() string { return cmp.Or(p.Key, p.Field) }

// String gives one line, "file:line:column: severity: field: found X,
// expected Y (hint) [code]", leaving out what is not known.
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

// advice is 1 for what is about the output alone, which is right as it is.
func (p Problem) advice() int {
	if p.Code == UnpinnedImage {
		return 1
	}
	return 0
}

// List is a report. It is an error when it holds at least one problem of
// severity error; Err makes that explicit.
type List []Problem

// Error gives the report, one problem a line.
func (l List) Error() string {
	lines := make([]string, len(l))
	for i, p := range l {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Err returns the list when it holds an error, else nil.
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
	var out List
	for _, p := range l {
		if p.Severity == s {
			out = append(out, p)
		}
	}
	return out
}

// Sort orders the list by file, line, column, field and code, so that a
// report reads like the file and is the same every time, and drops repeats.
// Advice on what is rendered comes last.
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

// Final is the list as it is shown: in order, a file that is a template with that alone,
// the old spellings of a file in one warning, and no advice on output where an error
// stops it.
func (l List) Final() List {
	l = slices.Clone(l)
	l.Sort()
	l = l.templatesAlone()
	if l.Err() != nil {
		l = slices.DeleteFunc(l, func(p Problem) bool { return p.advice() > 0 })
	}
	return l.oncePerFile()
}

// templatesAlone leaves of a file that is a template the first place that says so: all
// else may be otherwise once it is filled in.
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

// oncePerFile gathers the old spellings of a file in the first one's warning.
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
