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

// Command says how to run a daemon.
type Command struct {
	// Path of the program, looked up in PATH if it has no slash, and its
	// arguments without the program's name.
	Path string
	Args []string
	// Env is the environment; nil means the agent's own.
	Env []string
	// Stdout and Stderr are files, since children that outlive the daemon must
	// not make anyone wait for the end of a pipe; nil means the agent's own.
	Stdout, Stderr *os.File
	// Log bounds what the daemon may write to standard error, and to standard
	// output, which goes there too then.
	Log LogLimit
	// Logged gets each line of that, before the limit, such as to record what the daemon
	// does, and reports whether the line is to be logged. It must not keep the line, and not
	// wait. It may be nil; without Log it is not called.
	Logged func(line []byte) bool
	// Lines gets the lines within Log, each in a Write; nil means Stderr.
	Lines io.Writer
	// Unprivileged has the daemon run as DaemonUser, so that it reads none of the agent's
	// credentials and writes none of its files, where the agent can change users.
	Unprivileged bool
	// StopSignal is what Stop sends first; 0 means SIGTERM. HAProxy finishes what
	// it has at SIGUSR1.
	StopSignal syscall.Signal
	// Grace is how long the daemon has between StopSignal and SIGKILL; 0 means
	// defaultGrace.
	Grace time.Duration
}

// defaultGrace covers keepalived, which takes one to three seconds to end
// although its VIPs are gone within milliseconds.
const defaultGrace = 5 * time.Second

// Process is a running daemon, leader of a process group of its own.
type Process struct {
	cmd   *exec.Cmd
	stop  syscall.Signal
	grace time.Duration
	ended chan struct{}
	done  chan struct{}
	err   error // written before done is closed
}

// Start starts a daemon. The kernel sends it SIGTERM when the agent dies, also
// by SIGKILL (hard case 24). SIGTERM, not SIGKILL, because the daemon passes it on
// to its workers, removes its pid file and gives its VIPs away, whereas what
// happens to the workers of a daemon that was killed is up to them. A daemon that
// hears no plea is killed where the agent is process 1 of its container: the
// kernel leaves nothing of that.
//
// The kernel clears that signal for programs with file capabilities unless they are
// started by root: HAProxy of OpenShift's image ends with the agent because that is
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
			return nil, fmt.Errorf("start %s: %w", c.Path, err)
		}
		defer w.Close()
		logged, p.cmd.Stdout, p.cmd.Stderr = closed, w, w
	}
	started := make(chan error)
	go p.run(started, logged)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
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

// run is the daemon's whole life. The parent-death signal fires when the thread
// that forked ends, so this goroutine keeps its thread until the daemon is gone.
//
// logged returns when all that the daemon has logged was passed on.
func (p *Process) run(started chan<- error, logged func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := own(p.cmd)
	started <- err
	if err != nil {
		logged()
		return
	}
	p.awaitEnd()
	close(p.ended)
	// The leader's process ID, and so the group's, is not given to others before
	// Wait, so this reaches nobody else.
	syscall.Kill(-p.PID(), syscall.SIGTERM)
	p.err = p.cmd.Wait()
	disown(p.cmd)
	p.clear()
	logged()
	close(p.done)
}

// awaitEnd returns once the daemon has ended, its exit status still there.
func (p *Process) awaitEnd() {
	for {
		err := unix.Waitid(unix.P_PID, p.PID(), nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// clear makes sure that nothing of the daemon's group is left, so that no old
// worker holds a port or a VIP when the daemon is started again.
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

// PID is the daemon's process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ended is closed when the daemon's main process has ended, before others of its group
// are looked after.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Done is closed when the daemon has ended and no process of its group is left.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says, after Done, how the daemon ended: nil for exit status 0, else an
// *exec.ExitError.
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// Signal sends a signal to the daemon's main process. It returns
// os.ErrProcessDone if that has ended.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Stop asks the daemon to end with StopSignal, and kills all of its group when it
// has not ended after the grace period or when ctx ends before. It returns
// after Done.
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

// kill kills the group for as long as there is one: a process may fork while
// it is being killed.
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
