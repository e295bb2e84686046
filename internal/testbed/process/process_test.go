package process

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

// shell starts a script, and returns when it has printed "up".
func shell(t *testing.T, log, script string) *Process {
	t.Helper()
	p, err := Start("the script", exec.Command("sh", "-c", script), log)
	testkit.Must(t, err)
	t.Cleanup(p.Kill)
	for deadline := time.Now().Add(testkit.Patience); !strings.Contains(p.Output(), "up\n"); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it does not start:\n%s", p.Output())
		}
	}
	return p
}

func TestProcess(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	first := shell(t, log, "trap 'echo asked; exit 3' TERM; echo up; while :; do sleep 0.01; done")
	if first.Ended() || first.PID() == 0 {
		t.Errorf("process %d does not run", first.PID())
	}
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	testkit.Must(t, first.Stop(ctx))
	if !first.Ended() || first.ExitCode() != 3 || first.Output() != "up\nasked\n" {
		t.Errorf("it ended with %d, and printed %q", first.ExitCode(), first.Output())
	}

	second := shell(t, log, "trap '' TERM; echo up; while :; do sleep 0.01; done")
	testkit.Equal(t, "up\n", second.Output())
	short, cancelShort := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancelShort()
	if err := second.Stop(short); !errors.Is(err, context.DeadlineExceeded) || second.Ended() {
		t.Errorf("stopping a process that does not end: %v", err)
	}
	second.Kill()
	if !second.Ended() || second.ExitCode() != -1 {
		t.Errorf("killed, it ended with %d", second.ExitCode())
	}
	second.Kill() // again
}

// A frozen process does nothing from then on, with however many threads.
func TestFreeze(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	p := shell(t, log, "echo up; while :; do echo on; done")
	for range 50 {
		testkit.Must(t, p.Freeze())
		before := p.Output()
		runtime.Gosched()
		if after := p.Output(); after != before {
			t.Fatalf("it has printed %d bytes since it stood still", len(after)-len(before))
		}
		p.Signal(syscall.SIGCONT)
	}
	p.Kill()
	if err := p.Freeze(); err == nil {
		t.Error("an ended process counts as suspended")
	}
}
