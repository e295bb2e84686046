// Package process runs programs that end with this process, however it ends, and lets services
// in this process be killed and suspended like programs.
package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// Process is a started program.
type Process struct {
	cmd   *exec.Cmd
	name  string
	log   string // the file with its output
	begin int64  // offset of its output there
	done  chan struct{}
}

// Start starts a program; name identifies it in errors. Its output is appended to the file log.
func Start(name string, cmd *exec.Cmd, log string) (*Process, error) {
	p := &Process{cmd: cmd, name: name, log: log, done: make(chan struct{})}
	// A file, not a pipe: children that outlive the program must not keep readers waiting for
	// the end of its output.
	file, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	defer file.Close()
	if p.begin, err = file.Seek(0, io.SeekEnd); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	cmd.Stdout, cmd.Stderr = file, file
	if err := p.launch(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	return p, nil
}

// launch starts the process such that it ends with this one, and not by keys at this one's
// terminal. The kernel sends the parent-death signal when the thread that forked ends (hard
// case 24), so that thread is kept for as long as the process runs.
func (p *Process) launch() error {
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
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

// Signal sends a signal, unless the process has ended.
func (p *Process) Signal(s syscall.Signal) { p.cmd.Process.Signal(s) }

// freezeTime is many times what a process takes to stop, even on a busy machine.
const freezeTime = 30 * time.Second

// Freeze suspends the process until SIGCONT, and returns when all of its threads have stopped:
// SIGSTOP reaches those on another core a moment later.
func (p *Process) Freeze() error {
	p.Signal(syscall.SIGSTOP)
	for deadline := time.Now().Add(freezeTime); !p.frozen(); time.Sleep(time.Millisecond) {
		if p.Ended() || time.Now().After(deadline) {
			return fmt.Errorf("%s does not stop", p.name)
		}
	}
	return nil
}

// frozen reports whether all threads are stopped (proc_pid_stat(5): state T after the name).
func (p *Process) frozen() bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.PID()))
	for _, thread := range threads {
		stat, failed := os.ReadFile(thread)
		if err = errors.Join(err, failed); !bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" T")) {
			return false
		}
	}
	return err == nil && len(threads) > 0
}

// Kill kills the process, and returns when it has ended.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	<-p.done
}

// Stop sends SIGTERM and returns when the process has ended. When ctx ends before that, the
// process continues, and the error reports it.
func (p *Process) Stop(ctx context.Context) error {
	p.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s has not ended after SIGTERM: %w", p.name, ctx.Err())
	}
}

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ended reports whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// ExitCode returns the exit code of an ended process; -1 if a signal ended it.
func (p *Process) ExitCode() int { return p.cmd.ProcessState.ExitCode() }

// PID returns its process ID, even after it has ended.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Output returns its output so far.
func (p *Process) Output() string {
	file, err := os.Open(p.log)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	data, err := io.ReadAll(io.NewSectionReader(file, p.begin, 1<<62))
	if err != nil {
		return err.Error()
	}
	return string(data)
}
