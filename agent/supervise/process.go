package supervise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Command describes how to run a daemon.
type Command struct {
	// Path is the program, looked up in PATH if it has no slash; Args are its arguments
	// without the program's name.
	Path string
	Args []string
	// Env is the environment; nil means the agent's own.
	Env []string
	// Stdout and Stderr are files, because waiting for the end of a pipe would wait for
	// children that outlive the daemon; nil means the agent's own.
	Stdout, Stderr *os.File
	// Log bounds the daemon's standard error, and its standard output, which is merged
	// into it.
	Log LogLimit
	// Logged is called with each line, before the limit, to record events, and reports
	// whether to log the line. It must not keep the line or block. It may be nil; without
	// Log it is not called.
	Logged func(line []byte) bool
	// Lines receives the lines within Log, each in a Write; nil means Stderr.
	Lines io.Writer
	// Unprivileged runs the daemon as DaemonUser, without access to the agent's
	// credentials and files, if the agent can change users.
	Unprivileged bool
	// StopSignal is the first signal of Stop; 0 means SIGTERM. HAProxy drains at SIGUSR1.
	StopSignal syscall.Signal
	// Grace is the time between StopSignal and SIGKILL; 0 means defaultGrace.
	Grace time.Duration
}

// defaultGrace covers keepalived, which takes one to three seconds to end although its
// VIPs are gone within milliseconds.
const defaultGrace = 5 * time.Second

// Process is a running daemon, leader of its own process group.
type Process struct {
	cmd   *exec.Cmd
	stop  syscall.Signal
	grace time.Duration
	ended chan struct{}
	done  chan struct{}
	err   error // written before done is closed
}

// Start starts a daemon. The kernel sends it SIGTERM when the agent dies, even by SIGKILL
// (hard case 24): with SIGTERM the daemon stops its workers, removes its PID file and
// releases its VIPs, whereas SIGKILL would leave workers behind. A daemon that ignores
// SIGTERM is killed where the agent is process 1 of its container: the kernel kills the
// rest of it.
//
// The kernel clears the parent-death signal for programs with file capabilities unless
// root starts them: HAProxy of OpenShift's image ends with the agent because that is
// process 1 of the container.
func Start(c Command) (*Process, error) {
	p := &Process{
		cmd:   c.exec(),
		stop:  cmp.Or(c.StopSignal, syscall.SIGTERM),
		grace: cmp.Or(c.Grace, defaultGrace),
		ended: make(chan struct{}),
		done:  make(chan struct{}),
	}
	logged := func() {}
	if c.Log != (LogLimit{}) {
		to := c.Lines
		if to == nil {
			to = p.cmd.Stderr
		}
		w, closed, err := logPipe(c.Log, c.Logged, to)
		if err != nil {
			return nil, fmt.Errorf("starting %s: %w", c.Path, err)
		}
		defer w.Close()
		logged, p.cmd.Stdout, p.cmd.Stderr = closed, w, w
	}
	started := make(chan error)
	go p.run(started, logged)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.Path, err)
	}
	return p, nil
}

func (c Command) exec() *exec.Cmd {
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = c.Env, os.Stdout, os.Stderr
	if c.Stdout != nil {
		cmd.Stdout = c.Stdout
	}
	if c.Stderr != nil {
		cmd.Stderr = c.Stderr
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if c.Unprivileged {
		unprivileged(cmd)
	}
	return cmd
}

// run runs the daemon. The parent-death signal fires when the forking thread ends, so
// this goroutine keeps its thread until the daemon is gone.
//
// logged returns when the daemon's log was forwarded completely.
func (p *Process) run(started chan<- error, logged func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := startChild(p.cmd)
	started <- err
	if err != nil {
		logged()
		return
	}
	p.awaitEnd()
	close(p.ended)
	// The process ID of the leader, and so of the group, is not reused before Wait.
	syscall.Kill(-p.PID(), syscall.SIGTERM)
	p.err = p.cmd.Wait()
	forgetChild(p.cmd)
	p.clear()
	logged()
	close(p.done)
}

// awaitEnd returns once the daemon has ended, before its exit status is collected.
func (p *Process) awaitEnd() {
	for {
		err := unix.Waitid(unix.P_PID, p.PID(), nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// clear ends the rest of the daemon's group, so that no old worker holds a port or a VIP
// at the next start.
func (p *Process) clear() {
	deadline := time.Now().Add(p.grace)
	for p.groupLives() && time.Now().Before(deadline) {
		time.Sleep(5 * time.Millisecond)
	}
	if p.groupLives() {
		syscall.Kill(-p.PID(), syscall.SIGKILL)
	}
}

func (p *Process) groupLives() bool { return syscall.Kill(-p.PID(), 0) == nil }

// PID returns the daemon's process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ended is closed when the daemon's main process has ended, before the rest of its group.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Done is closed when the daemon has ended and no process of its group is left.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err waits for Done and returns how the daemon ended: nil for exit status 0, else an
// *exec.ExitError.
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// Signal sends a signal to the daemon's main process. It returns os.ErrProcessDone if
// that has ended.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Stop sends StopSignal, and kills the daemon's group after the grace period or when ctx
// ends. It returns after Done.
func (p *Process) Stop(ctx context.Context) {
	p.Signal(p.stop)
	grace := time.NewTimer(p.grace)
	defer grace.Stop()
	select {
	case <-p.done:
	case <-grace.C:
		p.kill()
	case <-ctx.Done():
		p.kill()
	}
}

// kill kills the group repeatedly: a process may fork while it is being killed.
func (p *Process) kill() {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for p.groupLives() {
		syscall.Kill(-p.PID(), syscall.SIGKILL)
		select {
		case <-p.done:
			return
		case <-again.C:
		}
	}
	<-p.done
}
