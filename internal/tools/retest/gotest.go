package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// event is one of `go test -json` (go doc test2json, go help buildjson).
type event struct {
	Action, Package, Test, Output string
	Key, Value                    string // of an attribute
	FailedBuild                   string // of a package that fails for it
}

// goTest runs go test with flags and packages, and passes every event to each. Failed tests are
// no error.
func (c *command) goTest(args []string, each func(event)) error {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Dir, cmd.Stderr = c.dir, os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	failed, readErr := read(out, each)
	err = cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && failed {
		err = nil
	}
	return errors.Join(readErr, err)
}

// read passes the events to each, and reports whether one of them is a failure.
func read(from io.Reader, each func(event)) (failed bool, err error) {
	for d := json.NewDecoder(from); ; {
		var e event
		if err := d.Decode(&e); err != nil {
			if !errors.Is(err, io.EOF) {
				io.Copy(io.Discard, from)
				return failed, fmt.Errorf("go test -json: %w", err)
			}
			return failed, nil
		}
		failed = failed || e.Action == "fail" || e.Action == "build-fail"
		each(e)
	}
}

// list returns the tests, examples and fuzz targets of a package with matching names.
func (c *command) list(pkg, pattern string) (names []string, err error) {
	err = c.goTest(append(c.flags, "-list", pattern, pkg), func(e event) {
		name := strings.TrimSpace(e.Output)
		if strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Example") || strings.HasPrefix(name, "Fuzz") {
			names = append(names, name)
		}
	})
	return names, err
}

// loadAverage returns the machine's load average of the last minute.
func loadAverage() string {
	text, _ := os.ReadFile("/proc/loadavg")
	load, _, _ := strings.Cut(string(text), " ")
	return load
}
