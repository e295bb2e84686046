package main

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// outcome is the result of one package.
type outcome struct {
	pkg    string
	tests  map[string]*test // by name, with subtests
	order  []*test          // in the order of their start
	output []string         // of the package itself
	line   string           // go test's own, such as "ok  	vipgen/render	0.2s"
	failed bool
	built  bool
}

// test is a test or a subtest.
type test struct {
	name   string
	live   bool   // by its attribute
	alone  bool   // by its attribute
	state  string // run, pause, cont, pass, fail or skip
	load   string // when it failed
	cannot string // run on this machine, and why
	output []string
}

func newOutcome(pkg string) *outcome {
	return &outcome{pkg: pkg, tests: map[string]*test{}, built: true}
}

// add adds an event of the package, and reports whether it is the last one.
func (o *outcome) add(e event, load func() string) (last bool) {
	if e.Test == "" {
		switch e.Action {
		case "output":
			o.output = append(o.output, e.Output)
			if strings.HasPrefix(e.Output, "ok  \t") || strings.HasPrefix(e.Output, "FAIL\t") || strings.HasPrefix(e.Output, "?   \t") {
				o.line = strings.TrimSuffix(e.Output, "\n")
			}
		case "pass", "skip", "fail":
			o.failed, o.built = e.Action == "fail", e.FailedBuild == ""
			return true
		}
		return false
	}
	t := o.tests[e.Test]
	if t == nil {
		t = &test{name: e.Test}
		o.tests[e.Test], o.order = t, append(o.order, t)
	}
	switch e.Action {
	case "attr":
		t.live = t.live || e.Key == "kind" && (e.Value == "live" || e.Value == "measured")
		t.alone = t.alone || e.Key == "alone"
		if e.Key == "cannot-run" {
			t.cannot = e.Value
		}
	case "output":
		t.output = append(t.output, e.Output)
	case "fail":
		t.state, t.load = e.Action, load()
	default:
		t.state = e.Action
	}
	return false
}

// top returns the top-level test of a subtest.
func top(name string) string { name, _, _ = strings.Cut(name, "/"); return name }

// under reports whether a test is another one or a subtest of it.
func under(name, of string) bool { return name == of || strings.HasPrefix(name, of+"/") }

// aborted reports whether the package ended before all of its tests: by a panic, a time-out, an
// exit or a signal. A regular end prints PASS or FAIL.
func (o *outcome) aborted() bool {
	ends := func(lines []string) bool {
		return slices.Contains(lines, "FAIL\n") || slices.Contains(lines, "PASS\n")
	}
	return o.failed && o.built && !ends(o.output) && !slices.ContainsFunc(o.order, func(t *test) bool { return ends(t.output) })
}

// culprits returns the failed tests: those reported as failed, or else the running ones that the
// last output of an aborted package names, or else all that were running. They are top-level
// tests, or subtests that run alone.
func (o *outcome) culprits() []string {
	var failed, running []*test
	for _, t := range o.order {
		switch t.state {
		case "fail":
			failed = append(failed, t)
		case "run", "cont":
			running = append(running, t)
		}
	}
	if o.aborted() && len(failed) == 0 {
		if failed = slices.DeleteFunc(slices.Clone(running), func(t *test) bool { return !o.names(t) }); len(failed) == 0 {
			failed = running
		}
	}
	var out []string
	for _, t := range failed {
		if o.subtestFailed(t) {
			continue // which is listed
		}
		if name := o.whole(t.name); !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// whole returns the test to run for a subtest: itself or the one around it that runs alone, or
// else its top-level test.
func (o *outcome) whole(name string) string {
	for name != top(name) && !o.tests[name].alone {
		name = name[:strings.LastIndex(name, "/")]
	}
	return name
}

var (
	timedOut = regexp.MustCompile(`(?s)panic: test timed out after.*?\n\trunning tests:\n(.*?)\n\n`)
	panicked = regexp.MustCompile(`(?s)(?:panic: |fatal error: )(.*?)(?:\n\ngoroutine .*?)(?:\n\n|$)`)
)

// names reports whether a time-out, or the trace of a panic, names a running test.
func (o *outcome) names(t *test) bool {
	var all strings.Builder
	for _, t := range o.order {
		all.WriteString(strings.Join(t.output, ""))
	}
	all.WriteString(strings.Join(o.output, ""))
	if m := timedOut.FindStringSubmatch(all.String()); m != nil {
		return strings.Contains(m[1], "\t"+t.name+" (")
	}
	return strings.Contains(panicked.FindString(all.String()), "."+top(t.name)+".") || strings.Contains(panicked.FindString(all.String()), "."+top(t.name)+"(")
}

// subtestFailed reports whether a subtest of a test failed.
func (o *outcome) subtestFailed(t *test) bool {
	return slices.ContainsFunc(o.order, func(other *test) bool { return other != t && under(other.name, t.name) && other.state == "fail" })
}

// isLive reports whether every failure of a test is live: each is in a live test, or that is a
// part of one or has one as a part.
func (o *outcome) isLive(name string) bool {
	for _, t := range o.order {
		if !under(t.name, name) || t.state == "pass" || t.state == "skip" || t.state == "pause" {
			continue
		}
		if o.subtestFailed(t) {
			continue // which is reported
		}
		if !slices.ContainsFunc(o.order, func(other *test) bool {
			return other.live && (under(t.name, other.name) || under(other.name, t.name))
		}) {
			return false
		}
	}
	return true
}

// missing returns the tests that neither ended nor are to blame.
func (o *outcome) missing(all []string) []string {
	blamed := o.culprits()
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool {
		t, began := o.tests[name]
		return slices.Contains(blamed, name) || began && (t.state == "pass" || t.state == "skip" || t.state == "fail")
	})
}

// print prints the package as go test does: only failures unless it is verbose, which was
// printed as it came.
func (o *outcome) print(out io.Writer, verbose bool) {
	if o.failed && !verbose {
		blamed := o.culprits()
		for _, t := range o.order {
			if t.state == "fail" || t.state != "pass" && t.state != "skip" && slices.Contains(blamed, top(t.name)) {
				printTest(out, t.output)
			}
		}
	}
	if !verbose {
		lines := o.output
		if !o.failed {
			lines = []string{o.line + "\n"}
		}
		printLines(out, lines)
	}
}

// printTest prints the line of a failed test first, as go test does without -v.
func printTest(out io.Writer, lines []string) {
	verdict := func(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "--- FAIL: ") }
	for _, first := range []bool{true, false} {
		printLines(out, slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return verdict(line) != first }))
	}
}

// printLines skips what only -v prints.
func printLines(out io.Writer, lines []string) {
	for _, line := range lines {
		if !strings.HasPrefix(line, "=== ") && line != "PASS\n" {
			fmt.Fprint(out, line)
		}
	}
}

// logLine matches a line of testing.T's own Log or Error.
var logLine = regexp.MustCompile(`^ +\w+_test\.go:\d+: `)

// why returns the first lines of a failed test and of its failed subtests; of all with an empty
// name.
func (o *outcome) why(of string) (lines []string) {
	for _, t := range o.order {
		if t.state != "fail" || o.subtestFailed(t) || of != "" && !under(t.name, of) {
			continue
		}
		own := slices.DeleteFunc(slices.Clone(t.output), func(line string) bool { return !logLine.MatchString(line) })
		lines = append(lines, t.name)
		for _, line := range own[:min(len(own), 5)] {
			line = strings.TrimSpace(line)
			lines = append(lines, line[:min(len(line), 300)])
		}
	}
	return lines
}

// loadOf returns the load average at the first failure of a test or of its subtests.
func (o *outcome) loadOf(name string) string {
	for _, key := range slices.Sorted(maps.Keys(o.tests)) {
		if t := o.tests[key]; under(key, name) && t.load != "" {
			return t.load
		}
	}
	return ""
}
