package process

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// A frozen process does nothing from then on, with however many threads.
func TestFreeze(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	testkit.Must(t, WriteProgram(log+".sh", []byte("#!/bin/sh\necho up; while :; do echo on; done")))
	p, err := Start("the script", exec.Command(log+".sh"), log)
	testkit.Must(t, err)
	t.Cleanup(p.Kill)
	testkit.Await(t, "the script", func() bool { return strings.Contains(p.Output(), "up\n") }, p.Output)
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
