package daemon

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testbed/process"
	"github.com/vipgen/vipgen/internal/testkit"
)

// shown is the number of lines of output printed by a failed test.
const shown = 100

// start runs a daemon, which makes the test live; at the end of the test it is killed if it
// still runs, and its output is logged, under the given name, if the test failed.
func start(t testing.TB, name string, cmd *exec.Cmd) *process.Process {
	t.Helper()
	testkit.Live(t)
	p, err := process.Start(name, cmd, filepath.Join(t.TempDir(), "log"))
	testkit.Must(t, err)
	t.Cleanup(func() {
		p.Kill()
		show(t, name, p.Output())
	})
	return p
}

// show logs the end of a daemon's output if the test failed.
func show(t testing.TB, name, output string) {
	t.Helper()
	if t.Failed() {
		lines := strings.Split(output, "\n")
		t.Logf("output of %s, its end:\n%s", name, strings.Join(lines[max(0, len(lines)-shown):], "\n"))
	}
}

// stop ends a process by SIGTERM, like a supervisor, and waits for its end.
func stop(t testing.TB, p *process.Process) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	testkit.Must(t, p.Stop(ctx))
}
