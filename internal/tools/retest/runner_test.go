package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// script abbreviates the output of go test for a package: a line for each event, such as "run
// TestA"; any other line is output of the test before it.
func script(pkg, text string) (events []event) {
	actions := []string{"run", "pause", "cont", "pass", "fail", "skip", "live", "alone"}
	var test string
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		action, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case strings.HasPrefix(line, "ok  \t") || strings.HasPrefix(line, "FAIL"):
			events = append(events, event{Action: "output", Package: pkg, Output: line + "\n"})
		case !slices.Contains(actions, action):
			events = append(events, event{Action: "output", Package: pkg, Test: test, Output: line + "\n"})
		case action == "live":
			events = append(events, event{Action: "attr", Package: pkg, Test: name, Key: "kind", Value: "live"})
		case action == "alone":
			events = append(events, event{Action: "attr", Package: pkg, Test: name, Key: "alone", Value: "yes"})
		default:
			test = name
			events = append(events, event{Action: action, Package: pkg, Test: name})
		}
	}
	return events
}

const (
	green  = "run TestA\nlive TestA\npass TestA\nok  \tp\t1s\npass"
	red    = "run TestA\nlive TestA\nfail TestA\nFAIL\nFAIL\tp\t1s\nfail"
	redSub = "run TestA\nrun TestA/b\nlive TestA/b\nfail TestA/b\nrun TestA/c\npass TestA/c\nfail TestA\nFAIL\nFAIL\tp\t1s\nfail"
	wrong  = "run TestA\nfail TestA\nFAIL\nFAIL\tp\t1s\nfail"
	mixed  = "run TestA\nrun TestA/b\nlive TestA/b\nfail TestA/b\nrun TestA/c\nfail TestA/c\nfail TestA\nFAIL\nFAIL\tp\t1s\nfail"
	step   = "run TestA\nlive TestA\nrun TestA/b\nalone TestA/b\nrun TestA/b/c\nfail TestA/b/c\nfail TestA/b\nfail TestA\nFAIL\nFAIL\tp\t1s\nfail"
	passes = "run TestA\nlive TestA\nrun TestA/b\npass TestA/b\npass TestA\nok  \tp\t1s\npass"
	empty  = "FAIL\tp\t1s\nfail"

	timeOut = "run TestB\nlive TestB\npause TestB\nrun TestA\nlive TestA\n" +
		"panic: test timed out after 4s\n\trunning tests:\n\t\tTestA (4s)\n\ngoroutine 2 [running]:\ntesting.x()\n\nFAIL\tp\t1s\nfail"
	panics = "run TestB\nlive TestB\ncont TestB\nrun TestA\nlive TestA\ncont TestB\n" +
		"panic: y\n\ngoroutine 10 [running]:\nx/p.helper(...)\n\t/p_test.go:5\nx/p.TestA.func1()\n\t/p_test.go:4\n\ngoroutine 11 [running]:\nx/p.TestB()\nFAIL\tp\t1s\nfail"
	killed = "run TestA\nlive TestA\nsignal: killed\nFAIL\tp\t1s\nfail"
	others = "run TestB\nlive TestB\npass TestB\nrun TestC\npass TestC\nok  \tp\t1s\npass"
	cWrong = "run TestB\nlive TestB\npass TestB\nrun TestC\nfail TestC\nFAIL\nFAIL\tp\t1s\nfail"
)

func TestRunner(t *testing.T) {
	const alone = "-p=1 -parallel=1 -count=1 -run ^TestA$ p"
	const stepAlone = "-p=1 -parallel=1 -count=1 -run ^TestA$/^b$ p"
	const rest = "-count=1 -run ^(TestB|TestC)$ p"
	tests := []struct {
		name string
		runs []string // output of go test, run after run
		want []string // its arguments after the first run
		late string   // red and all runs of the test in the table
		red  bool
	}{
		{"green", []string{green}, nil, "", false},
		{"late", []string{red, green, green, green}, []string{alone, alone, alone}, "1/4", false},
		{"a subtest is late", []string{redSub, green, green, green}, []string{alone, alone, alone}, "1/4", false},
		{"a step is late", []string{step, passes, passes, passes}, []string{stepAlone, stepAlone, stepAlone}, "1/4", false},
		{"red again", []string{red, red}, []string{alone}, "2/2", true},
		{"red in the end", []string{red, green, green, red}, []string{alone, alone, alone}, "2/4", true},
		{"does not run again", []string{red, "ok  \tp\t1s [no tests to run]\npass"}, []string{alone}, "2/2", true},
		{"deterministic", []string{wrong}, nil, "", true},
		{"a subtest is deterministic", []string{mixed}, nil, "", true},
		{"no test failed", []string{empty}, nil, "", true},
		{"timed out", []string{timeOut, others, green, green, green}, []string{rest, alone, alone, alone}, "1/4", false},
		{"panicked", []string{panics, others, green, green, green}, []string{rest, alone, alone, alone}, "1/4", false},
		{"killed", []string{killed, others, green, green, green}, []string{rest, alone, alone, alone}, "1/4", false},
		{"what ran for it is wrong", []string{killed, cWrong, green, green, green}, []string{rest, alone, alone, alone}, "1/4", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			r := &runner{command: &command{packages: []string{"./..."}}, out: t.Output(), load: func() string { return "7.5" }}
			r.goTest = func(args []string, each func(event)) error {
				if len(got) == len(tt.runs) {
					t.Fatalf("called with %q once more", args)
				}
				events := script("p", tt.runs[len(got)])
				got = append(got, strings.Join(args, " "))
				for _, e := range events {
					each(e)
				}
				return nil
			}
			r.list = func(string, string) ([]string, error) { return []string{"TestA", "TestB", "TestC"}, nil }
			testkit.Must(t, r.run())
			testkit.Equal(t, append([]string{"./..."}, tt.want...), got)
			var late []string
			for _, l := range r.report.Late {
				late = append(late, fmt.Sprintf("%d/%d", l.Red, l.Runs))
			}
			if strings.Join(late, " ") != tt.late || r.red != tt.red {
				t.Errorf("late %v, red %t; want %q, %t", late, r.red, tt.late, tt.red)
			}
			if last := r.report.Packages[0].Line; strings.HasPrefix(last, "FAIL") != tt.red && tt.name != "does not run again" {
				t.Errorf("red is %t, and the last line is %q", tt.red, last)
			}
		})
	}
}

// With the real go test: one test is late, one panics at first, one waits behind it, and
// finally all succeed; then one is wrong.
func TestGoTest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testkit.WriteFile(t, filepath.Join(dir, "go.mod"), []byte("module example.com/late\n\ngo 1.26\n"))
	testkit.WriteFile(t, filepath.Join(dir, "late_test.go"), testkit.ReadFile(t, "testdata/late_test.go.txt"))
	report := filepath.Join(dir, "report")
	var out strings.Builder
	status, err := run([]string{"-C", dir, "-report", report, "-v=false", "-vet=off", "-timeout", "10m", "./..."}, &out)
	testkit.Must(t, err)
	if text := out.String(); status != 0 || !strings.Contains(text, "--- FAIL: TestLate (0.") || !strings.Contains(text, "s)\n    late_test.go:17: late\n") || !strings.Contains(text, "panic: too late") ||
		!strings.Contains(text, "run now: TestAfter\n") || strings.Contains(text, "=== RUN") {
		t.Errorf("status %d\n%s", status, text)
	}
	testkit.WriteFile(t, filepath.Join(dir, "wrong"), nil)
	status, err = run([]string{"-C", dir, "-report", report, "-vet=off", "./..."}, &out)
	testkit.Must(t, err)
	if status != 1 {
		t.Errorf("status %d\n%s", status, out.String())
	}

	out.Reset()
	status, err = run([]string{"-close", report}, &out)
	testkit.Must(t, err)
	text := out.String()
	testkit.Contains(t, text, "\n  late  TestLate    example.com/late  1    4 ", "\n  late  TestPanics  example.com/late  1    4 ", "\nfirst failures:\n  TestLate\n    late_test.go:17: late\n", "\ntests that this machine cannot run:\n  example.com/late TestAfter: one core\n", "\nok  \texample.com/late\t", "\nFAIL\texample.com/late\t")
	if status != 0 || !strings.HasSuffix(text, "s\n\tTestAfter\n\tlate_test.go:30: wrong\nFAIL\n") {
		t.Errorf("status %d\n%s", status, text)
	}
}

// Build failures and missing packages fail the run.
func TestNothingRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testkit.WriteFile(t, filepath.Join(dir, "go.mod"), []byte("module example.com/broken\n\ngo 1.26\n"))
	testkit.WriteFile(t, filepath.Join(dir, "broken_test.go"), []byte("package broken\n\nvar x int = \"\"\n"))
	var out strings.Builder
	if status, err := run([]string{"-C", dir, "-vet=off", "./..."}, &out); err != nil || status != 1 || !strings.Contains(out.String(), "broken_test.go:3:13: cannot use") {
		t.Errorf("does not build: status %d, %v\n%s", status, err, out.String())
	}
	_, err := run([]string{"-C", dir, "-v"}, &out)
	testkit.Fails(testkit.In(t, "no package is named"), err, "")
}

func TestParse(t *testing.T) {
	c, err := parse([]string{"-C", "x", "-p", "3", "-v", "-run=TestA/b", "./...", "p", "-args", "-flood", "1m"})
	testkit.Must(t, err)
	if got := fmt.Sprintf("%+v", *c); got != "{dir:x report: closes: verbose:true runs:TestA/b flags:[-p 3 -run=TestA/b] packages:[./... p] args:[-args -flood 1m]}" {
		t.Error(got)
	}
}

// ciRun runs continuous integration with the test's own parts: one fails, one leaves a process
// behind that holds its output open, and one hangs. It returns when no process holds the run's
// own output.
func ciRun(t *testing.T, env string) string {
	t.Helper()
	script, err := os.ReadFile(filepath.Join(testkit.Root(t), ".ci", "run"))
	testkit.Must(t, err)
	dir := t.TempDir()
	testkit.WriteFile(t, filepath.Join(dir, ".ci/run"), regexp.MustCompile(`(shown e2e) \d+`).ReplaceAll(script, []byte("$1 2")))
	testkit.WriteFile(t, filepath.Join(dir, "Makefile"), []byte(`
test: ; @echo tested $$VIPGEN_CI
lint: ; @exit 3
test-live: ; @setsid sleep 60 & echo alive
test-e2e: ; @exec sleep 600
%: ; @true
`))
	cmd := exec.Command("bash", ".ci/run")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env, "MAKEFLAGS=")
	out, err := cmd.CombinedOutput()
	testkit.Equal(testkit.In(t, err), 1, cmd.ProcessState.ExitCode())
	return string(out)
}

func TestContinuousIntegration(t *testing.T) {
	t.Parallel()
	out := ciRun(t, "END=600")
	for _, want := range []string{
		`\ntested 1\n`, `\nalive\n`, `\n== lint: .* exit status 2\n`, `\n== e2e: CUT OFF after 2 s\n`, `\nparts:\ntest `,
		`\nlint +\d+ s, .* exit status 2\n`, `\nraces +\d+ s, .* exit status 0\n`, `\ne2e +\d+ s, .* cut off\n`, `\n\d+ s, RED\n$`,
	} {
		testkit.Equal(testkit.In(t, want, "is in", out), true, regexp.MustCompile(want).MatchString(out))
	}
	if got := strings.Count(out[strings.Index(out, "\nparts:\n"):], "exit status 0\n"); got != parts(t)-2 {
		t.Errorf("%d parts are green\n%s", got, out)
	}
}

// When its time is over the run ends with its table.
func TestContinuousIntegrationEnds(t *testing.T) {
	t.Parallel()
	if out := ciRun(t, "END=0"); strings.Count(out, " not run: 0 s are over\n") != parts(t) || !strings.HasSuffix(out, " s, RED\n") {
		t.Error(out)
	}
}

// parts returns the number of parts of .ci/run.
func parts(t *testing.T) int {
	return len(regexp.MustCompile(`\b(shown|part) \S+ \d+ `).FindAll(testkit.ReadFile(t, filepath.Join(testkit.Root(t), ".ci", "run")), -1))
}

// The modules of images and of the lab use the same versions as vipgen: one different version
// low in the graph, and each package above it is compiled again for them.
func TestModulesAgree(t *testing.T) {
	t.Parallel()
	versions := func(module string) map[string]string {
		cmd := exec.Command("go", "mod", "edit", "-json")
		cmd.Dir = filepath.Join(testkit.Root(t), module)
		out, err := cmd.Output()
		testkit.Must(t, err)
		var mod struct {
			Require []struct{ Path, Version string }
		}
		testkit.Must(t, json.Unmarshal(out, &mod))
		all := map[string]string{}
		for _, r := range mod.Require {
			all[r.Path] = r.Version
		}
		return all
	}
	own := versions(".")
	for _, module := range []string{"lab", "internal/image"} {
		list := exec.Command("go", "list", "./...")
		list.Dir = filepath.Join(testkit.Root(t), module)
		testkit.Run(testkit.In(t, module), list)
		for path, version := range versions(module) {
			if have, shared := own[path]; shared && have != version {
				t.Errorf("%s has %s %s, vipgen %s: run `go get %s@%s` and `go mod tidy`", module, path, version, have, path, version)
			}
		}
	}
}
