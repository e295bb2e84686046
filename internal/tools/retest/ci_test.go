package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

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
	if cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("%v", err)
	}
	return string(out)
}

func TestContinuousIntegration(t *testing.T) {
	t.Parallel()
	out := ciRun(t, "END=600")
	for _, want := range []string{
		`\ntested 1\n`, `\nalive\n`, `\n== lint: .* exit status 2\n`, `\n== e2e: CUT OFF after 2 s\n`, `\nparts:\ntest `,
		`\nlint +\d+ s, .* exit status 2\n`, `\nraces +\d+ s, .* exit status 0\n`, `\ne2e +\d+ s, .* cut off\n`, `\n\d+ s, RED\n$`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("%q is not in\n%s", want, out)
		}
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
