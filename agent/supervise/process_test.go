package supervise

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

// exitCode returns the exit code of an error of Wait, or minus the signal that ended the
// process.
func exitCode(err error) int {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		if err != nil {
			return -1000
		}
		return 0
	}
	if s := exit.Sys().(syscall.WaitStatus); s.Signaled() {
		return -int(s.Signal())
	}
	return exit.ExitCode()
}

// shell starts a script and returns once it has printed a line.
func shell(t *testing.T, script string, c Command) (*Process, string) {
	t.Helper()
	r, w, err := os.Pipe()
	testkit.Must(t, err)
	c.Path, c.Args, c.Stdout = "sh", []string{"-c", script}, w
	p, err := Start(c)
	w.Close()
	testkit.Must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		p.Stop(ctx)
		r.Close()
	})
	line, err := bufio.NewReader(r).ReadString('\n')
	testkit.Must(t, err)
	return p, strings.TrimSpace(line)
}

// The exit of the daemon's main process is known before its descendants have ended.
func TestEnded(t *testing.T) {
	p, _ := shell(t, `trap "" TERM; sleep 1000 & echo on; wait`, Command{Grace: time.Hour}) // which its child inherits
	select {
	case <-p.Ended():
		t.Fatal("it has not ended")
	default:
	}
	testkit.Must(t, p.Signal(syscall.SIGKILL))
	select {
	case <-p.Ended():
	case <-time.After(testkit.Patience):
		t.Fatal("its end is not reported")
	}
	select {
	case <-p.Done():
		t.Error("done, while a process of its group lives on")
	default:
	}
}

// HAProxy with its workers: lab/agents.
func TestHardCase24KilledAgentTakesDaemonAlong(t *testing.T) {
	agent := exec.Command("/proc/self/exe", "sleep", "1000")
	agent.Env = append(os.Environ(), roleVariable+"=agent")
	out, err := agent.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, agent.Start())
	defer agent.Wait()
	defer agent.Process.Kill()
	line, err := bufio.NewReader(out).ReadString('\n')
	testkit.Must(t, err)
	daemon, err := strconv.Atoi(strings.TrimSpace(line))
	testkit.Must(t, err)
	testkit.Await(t, "the daemon to run", func() bool {
		comm, _ := os.ReadFile("/proc/" + strconv.Itoa(daemon) + "/comm")
		return string(comm) == "sleep\n"
	})
	agent.Process.Kill()
	agent.Wait()
	testkit.Await(t, "the daemon to end", func() bool { return gone(daemon) })
}

func TestStop(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	const stubborn = `trap "" TERM; echo; while :; do sleep 0.01; done`
	for name, tt := range map[string]struct {
		script string
		ctx    context.Context
		c      Command
		want   int
	}{
		"ends at SIGTERM":         {"echo; exec sleep 1000", context.Background(), Command{Grace: testkit.Patience}, -int(syscall.SIGTERM)},
		"has work to do first":    {`trap "exit 7" TERM; echo; while :; do sleep 0.01; done`, context.Background(), Command{Grace: testkit.Patience}, 7},
		"ignores SIGTERM":         {stubborn, context.Background(), Command{Grace: 50 * time.Millisecond}, -int(syscall.SIGKILL)},
		"ignores it, no time now": {stubborn, ended, Command{Grace: testkit.Patience}, -int(syscall.SIGKILL)},
		"another signal":          {`trap "exit 9" USR1; trap "" TERM; echo; while :; do sleep 0.01; done`, context.Background(), Command{StopSignal: syscall.SIGUSR1, Grace: testkit.Patience}, 9},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := shell(t, tt.script, tt.c)
			p.Stop(tt.ctx)
			testkit.Equal(testkit.In(t, p.Err()), tt.want, exitCode(p.Err()))
			p.Stop(tt.ctx) // stopping again is harmless
			testkit.Is(testkit.In(t, "signal after the end"), p.Signal(syscall.SIGHUP), os.ErrProcessDone)
		})
	}
}

func TestNothingOutlivesADaemon(t *testing.T) {
	for name, script := range map[string]string{
		"a worker":                     "sleep 1000 & echo $!; exit 3",
		"a worker that hears no plea":  `sh -c 'trap "" TERM; echo $$; while :; do sleep 0.01; done' & wait`,
		"a worker of a killed master ": "sleep 1000 & echo $!; kill -9 $$",
	} {
		t.Run(name, func(t *testing.T) {
			p, line := shell(t, script, Command{Grace: 100 * time.Millisecond})
			worker, err := strconv.Atoi(line)
			testkit.Must(t, err)
			p.Stop(context.Background())
			testkit.Await(t, "the worker to end", func() bool { return gone(worker) })
		})
	}
}

func TestStartFails(t *testing.T) {
	if p, err := Start(Command{Path: "/no/such/daemon"}); err == nil {
		p.Stop(context.Background())
		t.Error("started")
	}
}

func TestReapOrphansOnly(t *testing.T) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), roleVariable+"=reaper")
	testkit.Run(t, cmd)
}

func TestOutput(t *testing.T) {
	out, err := Output(context.Background(), "sh", "-c", "echo one; echo two >&2; exit 5")
	if string(out) != "one\ntwo\n" || exitCode(err) != 5 {
		t.Errorf("%q, %v", out, err)
	}
	out, err = Output(context.Background(), "sh", "-c", "head -c 1000000 /dev/zero")
	if !bytes.Equal(out, make([]byte, maxOutput)) || err != nil {
		t.Errorf("%d bytes, %v", len(out), err)
	}
	// A process outside of its group still has the pipe open: the program counts as ended
	// anyway.
	out, err = Output(t.Context(), "sh", "-c", "setsid sleep 5 & echo on")
	if string(out) != "on\n" || err != nil {
		t.Errorf("a program that leaves another behind: %q, %v", out, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err = Output(ctx, "sh", "-c", "sleep 1000 & wait")
	testkit.Is(testkit.In(t, "a program that hangs"), err, context.DeadlineExceeded)
	told, end := context.WithCancelCause(t.Context())
	why := errors.New("no time left")
	end(why)
	_, err = Output(told, "true")
	testkit.Is(testkit.In(t, "a program that was not started any more"), err, why)
}
