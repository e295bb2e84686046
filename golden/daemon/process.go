package daemon

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is how long anything may take that takes well under a second on an
// idle machine.
const patience = 2 * time.Minute

// shown is how many lines of its output a test that failed shows.
const shown = 100

// process is a daemon that runs until the test ends.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string        // the file with its output
	done chan struct{} // closed when it ended
}

// start runs a daemon; at the end of the test it is killed if it still runs,
// and its output is logged, under the name given, if the test failed.
func start(t testing.TB, name string, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{name: name, cmd: cmd, log: filepath.Join(t.TempDir(), "log"), done: make(chan struct{})}
	// A file, not a pipe: children that outlive the daemon must not make
	// anyone wait for the end of its output.
	log, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log

	if err := p.launch(); err != nil {
		t.Fatalf("starting %s: %v", name, err)
	}
	t.Cleanup(func() {
		p.signal(syscall.SIGKILL)
		<-p.done
		if t.Failed() {
			lines := strings.Split(p.output(), "\n")
			t.Logf("output of %s, its end:\n%s", name, strings.Join(lines[max(0, len(lines)-shown):], "\n"))
		}
	})
	return p
}

// launch starts the process such that it dies with the test, whichever way the
// test ends. The kernel sends the parent-death signal when the thread that
// forked ends, so that thread is kept for as long as the process runs.
func (p *process) launch() error {
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.cmd.Wait()
			close(p.done)
		}
	}()
	return <-started
}

// signal sends a signal, to no one if the process has ended.
func (p *process) signal(s syscall.Signal) { p.cmd.Process.Signal(s) }

// stop ends the process as a supervisor would: it is asked to and given time.
func (p *process) stop(t testing.TB) {
	t.Helper()
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(patience):
		t.Fatalf("%s did not end within %v of SIGTERM", p.name, patience)
	}
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// output returns what the process has printed so far.
func (p *process) output() string {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
