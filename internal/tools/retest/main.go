// Command retest runs go test, and then each failed live test three times more, alone: a test
// that then passes every time was late, and the run is green. The Makefile runs live tests with
// it:
//
//	go run ./internal/tools/retest [-C DIR] [-report FILE] [flags of go test] PACKAGES [-args ...]
//	go run ./internal/tools/retest -close FILE
//
// A test is live by its attribute "kind" (internal/testkit). Others are never run again: a
// single failure is an error. A subtest with the attribute "alone" runs again without the rest of
// its test. Packages that do not build are red as well, and so are packages that fail without a
// failed test. A panic and a time-out are failures of the test that they name; tests of that
// package that did not run because of it run then.
//
// On SIGQUIT to the process group, which .ci/run sends to a command that takes too long, it
// names the running tests, whose processes print their goroutines and end. Nothing runs again.
//
// It prints the output of go test and finally a table of the tests that were late, with the load
// average at the time, those that this machine cannot run, and go test's own line of each package,
// with the first lines of its failures. FILE collects these of several runs, for -close, which
// prints them all. The exit status is 1 for a failure.
package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	status, err := run(os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "retest:", err)
		status = 2
	}
	os.Exit(status)
}

func run(args []string, out io.Writer) (status int, err error) {
	c, err := parse(args)
	if err != nil {
		return 0, err
	}
	if c.closes != "" {
		r, err := readReports(c.closes)
		if err != nil {
			return 0, err
		}
		r.print(out)
		return 0, nil
	}
	r := &runner{command: c, out: out, goTest: c.goTest, list: c.list, load: loadAverage}
	cut := make(chan os.Signal, 1)
	signal.Notify(cut, syscall.SIGQUIT)
	defer signal.Stop(cut)
	go func() {
		for range cut {
			r.mu.Lock()
			r.cutOff()
			r.mu.Unlock()
		}
	}()
	if err := r.run(); err != nil {
		return 0, err
	}
	r.report.print(out)
	if c.report != "" {
		if err := r.report.append(c.report); err != nil {
			return 0, err
		}
	}
	if r.red {
		return 1, nil
	}
	return 0, nil
}

// command is the command line.
type command struct {
	dir            string // of the module
	report, closes string
	verbose        bool
	runs           string   // the value of -run
	flags          []string // of go test
	packages       []string
	args           []string // -args and what follows
}

// switches are flags of go test without a value.
var switches = map[string]bool{
	"v": true, "race": true, "short": true, "failfast": true, "cover": true, "a": true, "n": true, "x": true, "trimpath": true, "work": true, "fullpath": true, "asan": true, "msan": true,
}

func parse(args []string) (*command, error) {
	c := &command{}
	for i := 0; i < len(args); i++ {
		flag := args[i]
		if !strings.HasPrefix(flag, "-") {
			c.packages = append(c.packages, flag)
			continue
		}
		name, value, has := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(flag, "-"), "-"), "=")
		if name == "args" {
			c.args = args[i:]
			break
		}
		words := []string{flag}
		if !has && !switches[name] {
			if i++; i == len(args) {
				return nil, fmt.Errorf("%s needs a value", flag)
			}
			value = args[i]
			words = append(words, value)
		}
		switch name {
		case "C":
			c.dir = value
			continue
		case "report":
			c.report = value
			continue
		case "close":
			c.closes = value
			continue
		case "json":
			return nil, fmt.Errorf("-json is what it reads itself")
		case "v": // -json has all that it prints, and no attributes without it
			c.verbose = value != "false"
			continue
		case "run":
			c.runs = value
		}
		c.flags = append(c.flags, words...)
	}
	if c.closes == "" && len(c.packages) == 0 {
		return nil, fmt.Errorf("no packages given: name some, such as ./render")
	}
	return c, nil
}
