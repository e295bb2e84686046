package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// times is how often a failed live test is run again, and has to pass.
const times = 3

// runner runs the tests of a command line. Its functions are replaced in tests.
type runner struct {
	command *command
	out     io.Writer
	goTest  func(args []string, each func(event)) error
	list    func(pkg, pattern string) ([]string, error)
	load    func() string

	mu      sync.Mutex          // guards the following fields
	running map[string]*outcome // by package
	cut     bool                // by a signal: later failures are not run again

	report report
	red    bool
	failed []row // live tests, to be run again
}

// run returns an error if it cannot determine the results.
func (r *runner) run() error {
	c := r.command
	outcomes, err := r.test(slices.Concat(c.flags, c.packages, c.args)...)
	if err != nil {
		return err
	}
	for _, o := range outcomes {
		if err := r.judge(o); err != nil {
			return err
		}
	}
	for _, f := range r.failed {
		if err := r.again(f); err != nil {
			return err
		}
	}
	return nil
}

// test runs tests, prints go test's output, and returns the result of each package.
func (r *runner) test(args ...string) (outcomes []*outcome, err error) {
	r.running = map[string]*outcome{}
	err = r.goTest(args, func(e event) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if e.Action == "build-output" || e.Package == "" {
			fmt.Fprint(r.out, e.Output)
			return
		}
		o := r.running[e.Package]
		if o == nil {
			o = newOutcome(e.Package)
			r.running[e.Package] = o
		}
		if strings.HasPrefix(e.Output, quit) {
			r.cutOff()
		}
		if r.command.verbose {
			fmt.Fprint(r.out, e.Output)
		}
		if o.add(e, r.load) {
			o.print(r.out, r.command.verbose)
			outcomes = append(outcomes, o)
			delete(r.running, e.Package)
		}
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	for pkg := range r.running {
		r.fail(&outcome{pkg: pkg, line: "FAIL\t" + pkg + "\tno end"})
	}
	return outcomes, err
}

// quit begins the output of a process that SIGQUIT ends. The signal reaches retest as well, maybe
// later than this output.
const quit = "SIGQUIT: quit"

// cutOff prints the running tests, in the order of their start, once. Later failures are due to
// their end. The caller holds mu.
func (r *runner) cutOff() {
	if r.cut {
		return
	}
	r.cut = true
	for _, pkg := range slices.Sorted(maps.Keys(r.running)) {
		var names []string
		for _, t := range r.running[pkg].order {
			if t.state == "run" || t.state == "cont" {
				names = append(names, t.name)
			}
		}
		fmt.Fprintf(r.out, "retest: cut off: %s runs %s\n", pkg, cmp.Or(strings.Join(names, ", "), "no test"))
	}
}

func (r *runner) isCut() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cut
}

// judge evaluates the result of a package: certain failures, live tests to run again, and runs
// those that did not run because another one ended the process.
func (r *runner) judge(o *outcome) error {
	r.report.ended(o)
	for _, t := range o.order {
		if t.cannot != "" {
			r.report.NotRun = append(r.report.NotRun, notRun{o.pkg, t.name, t.cannot})
		}
	}
	if !o.failed {
		return nil
	}
	culprits := o.culprits()
	if len(culprits) == 0 || r.isCut() {
		r.fail(o)
		return nil
	}
	for _, name := range culprits {
		if o.isLive(name) {
			r.failed = append(r.failed, row{Package: o.pkg, Test: name, Red: 1, Runs: 1, Load: o.loadOf(name), Why: o.why(name)})
		} else {
			r.fail(o)
		}
	}
	if !o.aborted() {
		return nil
	}
	pattern, _, _ := strings.Cut(cmp.Or(r.command.runs, "."), "/")
	all, err := r.list(o.pkg, pattern)
	if err != nil {
		return fmt.Errorf("tests of %s: %w", o.pkg, err)
	}
	missing := o.missing(all)
	if len(missing) == 0 {
		return nil
	}
	fmt.Fprintf(r.out, "retest: %s ended early; run now: %s\n", o.pkg, strings.Join(missing, ", "))
	more, err := r.test(r.only(o.pkg, missing...)...)
	if err != nil {
		return err
	}
	for _, o := range more {
		if err := r.judge(o); err != nil {
			return err
		}
	}
	return nil
}

// only returns the arguments that run some tests of a package.
func (r *runner) only(pkg string, tests ...string) []string {
	pattern := "^(" + strings.Join(tests, "|") + ")$"
	if len(tests) == 1 {
		pattern = "^" + strings.ReplaceAll(regexp.QuoteMeta(tests[0]), "/", "$/^") + "$"
	}
	return slices.Concat(r.command.flags, []string{"-count=1", "-run", pattern, pkg}, r.command.args)
}

// again runs a failed live test, alone, until it fails again or has passed often enough.
func (r *runner) again(f row) error {
	alone := r.only(f.Package, f.Test)
	alone = slices.Concat(r.command.flags, []string{"-p=1", "-parallel=1"}, alone[len(r.command.flags):])
	for n := 1; n <= times && f.Red == 1 && !r.isCut(); n++ {
		fmt.Fprintf(r.out, "retest: %s %s failed and is run again, alone: %d of %d\n", f.Package, f.Test, n, times)
		outcomes, err := r.test(alone...)
		if err != nil {
			return err
		}
		if r.isCut() {
			break
		}
		f.Runs++
		for _, o := range outcomes {
			if r.report.ended(o); o.tests[f.Test] == nil || o.failed {
				f.Red++
				r.fail(o)
			}
		}
	}
	if r.isCut() {
		r.fail(&outcome{pkg: f.Package, line: "FAIL\t" + f.Package + "\tcut off before " + f.Test + " had run again"})
	}
	r.report.Late = append(r.report.Late, f)
	return nil
}

// fail records a certain failure.
func (r *runner) fail(o *outcome) {
	r.red = true
	r.report.failed(o)
}
