package process

import (
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
	program := log + ".sh"
	testkit.Must(t, WriteProgram(program, []byte("#!/bin/sh\n"+script)))
	p, err := Start("the script", exec.Command(program), log)
	testkit.Must(t, err)
	t.Cleanup(p.Kill)
	for deadline := time.Now().Add(testkit.Patience); !strings.Contains(p.Output(), "up\n"); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it does not start:\n%s", p.Output())
		}
	}
	return p
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
			t.Fatalf("it has printed %d bytes since it was frozen", len(after)-len(before))
		}
		p.Signal(syscall.SIGCONT)
	}
	p.Kill()
	if err := p.Freeze(); err == nil {
		t.Error("an ended process counts as suspended")
	}
}
