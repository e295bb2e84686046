package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// report is printed at the end.
type report struct {
	Packages []packageLine `json:"packages"` // in the order of their ends
	Late     []row         `json:"late"`
	NotRun   []notRun      `json:"notRun"`
}

// notRun is a test that the machine cannot run (testkit.CannotRun).
type notRun struct{ Package, Test, Why string }

// packageLine is go test's own line of a package.
type packageLine struct {
	Package, Line string
	Failed        bool     // even if it passed later
	Why           []string // output of its failed tests
}

// row is a live test that failed at first.
type row struct {
	Package, Test string
	Red, Runs     int      // failures and runs
	Load          string   // the load average at the first failure
	Why           []string // output of the first failure
}

// verdict returns RED for a test that failed again, and cut if there was no time to run it again.
func (r *row) verdict() string {
	switch {
	case r.Red > 1:
		return "RED"
	case r.Runs <= times:
		return "cut"
	}
	return "late"
}

// ended records go test's line of a package that has ended, in place of an earlier one.
func (r *report) ended(o *outcome) { *r.entry(o) = packageLine{o.pkg, o.line, r.entry(o).Failed, nil} }

// failed records a package that failed.
func (r *report) failed(o *outcome) { *r.entry(o) = packageLine{o.pkg, o.line, true, o.why("")} }

// entry returns the entry of a package, which keeps its line once it has failed.
func (r *report) entry(o *outcome) *packageLine {
	for i := range r.Packages {
		if p := &r.Packages[i]; p.Package == o.pkg {
			if p.Failed {
				return &packageLine{Failed: true}
			}
			return p
		}
	}
	r.Packages = append(r.Packages, packageLine{Package: o.pkg})
	return &r.Packages[len(r.Packages)-1]
}

// print writes the table of tests that were late, and the packages' lines, failed ones last.
func (r *report) print(out io.Writer) {
	if len(r.Late) == 0 {
		fmt.Fprintln(out, "\nlive tests that failed at first: none")
	} else {
		fmt.Fprintln(out, "\nlive tests that failed at first, and were run again alone:")
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "  \ttest\tpackage\tred\tof runs\tload average then")
		for _, l := range r.Late {
			fmt.Fprintf(w, "  %s\t%s\t%s\t%d\t%d\t%s\n", l.verdict(), l.Test, l.Package, l.Red, l.Runs, l.Load)
		}
		w.Flush()
		fmt.Fprintln(out, "\nfirst failures:")
		for _, l := range r.Late {
			if len(l.Why) > 0 { // none after a panic, which is in the output
				fmt.Fprintln(out, "  "+strings.Join(l.Why, "\n    "))
			}
		}
	}
	if len(r.NotRun) > 0 {
		fmt.Fprintln(out, "\ntests that this machine cannot run:")
	}
	for _, n := range r.NotRun {
		fmt.Fprintf(out, "  %s %s: %s\n", n.Package, n.Test, n.Why)
	}
	fmt.Fprintln(out)
	for _, failed := range []bool{false, true} { // failures last, where a reader of the end sees them
		for _, p := range r.Packages {
			if p.Failed == failed && !strings.HasPrefix(p.Line, "?") { // has test files
				fmt.Fprintln(out, strings.Join(append([]string{p.Line}, p.Why...), "\n\t"))
			}
		}
	}
	if slices.ContainsFunc(r.Packages, func(p packageLine) bool { return p.Failed }) {
		fmt.Fprintln(out, "FAIL")
	}
}

// append appends the report to a file.
func (r *report) append(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(json.NewEncoder(f).Encode(r), f.Close())
}

// readReports merges all reports in a file.
func readReports(path string) (*report, error) {
	all := &report{}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for d := json.NewDecoder(f); ; {
		var r report
		if err := d.Decode(&r); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all.Packages = append(all.Packages, r.Packages...)
		all.Late = append(all.Late, r.Late...)
		all.NotRun = append(all.NotRun, r.NotRun...)
	}
}
