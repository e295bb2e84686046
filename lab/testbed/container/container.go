package container

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/lab/testbed/host"
)

// Container is a container that was started.
type Container struct {
	ID string

	host   *host.Host
	bundle string
	run    *exec.Cmd
	done   chan struct{}
	code   int
	pid    atomic.Int64 // 0 until it is known

	env      []string
	uid, gid uint32
}

// Start starts a container and returns as soon as the runtime runs. The container ends with its
// program.
func Start(h *host.Host, cfg Config) (*Container, error) {
	c := &Container{ID: cfg.ID, host: h, bundle: filepath.Join(h.Dir(), "containers", cfg.ID), done: make(chan struct{}), env: cfg.env(), uid: cfg.UID, gid: cfg.GID}
	if err := c.prepare(cfg); err != nil {
		return nil, fmt.Errorf("container %s on %s: %w", c.ID, h.Name, err)
	}
	out, err := openLog(cfg.Log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	errOut, err := openLog(cmp.Or(cfg.ErrorLog, cfg.Log))
	if err != nil {
		return nil, err
	}
	defer errOut.Close()
	c.run = c.runc(context.Background(), "run", "--bundle", c.bundle, "--pid-file", c.pidFile(), c.ID)
	c.run.Stdout, c.run.Stderr = out, errOut
	if err := c.run.Start(); err != nil {
		return nil, errors.Join(err, c.remove())
	}
	go c.wait()
	return c, nil
}

func openLog(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
}

// prepare creates the runtime's bundle.
func (c *Container) prepare(cfg Config) error {
	root := filepath.Join(c.bundle, "rootfs")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	mounts, err := cfg.Image.unpack(root)
	if err != nil {
		return err
	}
	data, err := json.Marshal(cfg.spec(root, c.cgroup(), mounts))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.bundle, "config.json"), data, 0o644)
}

func (c *Container) pidFile() string { return filepath.Join(c.bundle, "pid") }
func (c *Container) state() string   { return filepath.Join(c.host.Dir(), "runc") }
func (c *Container) cgroup() string  { return filepath.Join(c.host.Cgroup(), c.ID) }

func (c *Container) runc(ctx context.Context, args ...string) *exec.Cmd {
	return c.host.Exec(ctx, "runc", append([]string{"--root", c.state()}, args...)...)
}

// wait waits for the end of the container. The runtime cleans up itself unless it was killed with
// the host.
func (c *Container) wait() {
	defer close(c.done)
	c.run.Wait()
	c.code = exitCode(c.run.ProcessState)
	c.remove()
}

// exitCode returns a program's exit code as a shell does: 128 plus the signal that ended it.
func exitCode(s *os.ProcessState) int {
	if status, ok := s.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return s.ExitCode()
}

func (c *Container) remove() error {
	return errors.Join(host.RemoveCgroups(c.cgroup()), os.RemoveAll(filepath.Join(c.state(), c.ID)), os.RemoveAll(c.bundle))
}

// Done returns a channel that is closed when the container has ended.
func (c *Container) Done() <-chan struct{} { return c.done }

// ExitCode returns the exit code of the program of a container that has ended; 128 plus the number
// of the signal that ended it, if any.
func (c *Container) ExitCode() int {
	<-c.done
	return c.code
}

var errEnded = errors.New("the container has ended")

// Signal sends a signal to the container's first process, once it exists.
func (c *Container) Signal(s syscall.Signal) error {
	pid, err := c.PID()
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal %v to container %s: %w", s, c.ID, err)
	}
	return nil
}

// Stop sends SIGTERM to the container, and SIGKILL after the grace period or when ctx ends. It
// returns when the container has ended.
func (c *Container) Stop(ctx context.Context, grace time.Duration) error {
	if err := c.Signal(syscall.SIGTERM); err != nil {
		return ignoreEnded(err)
	}
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
	case <-time.After(grace):
	}
	if err := c.Signal(syscall.SIGKILL); err != nil {
		return ignoreEnded(err)
	}
	<-c.done
	return nil
}

func ignoreEnded(err error) error {
	if errors.Is(err, errEnded) {
		return nil
	}
	return err
}

// Exec runs a program in the container and returns its output and exit code. When ctx ends, the
// program is terminated, and killed a second later.
//
// It enters the container's namespaces and control groups by nsenter. The runtime's exec takes four
// times the CPU time for a probe, half of the total of a lab with several nodes. The difference is
// that the program does not have the container's capabilities.
func (c *Container) Exec(ctx context.Context, args ...string) (output string, code int, err error) {
	pid, err := c.PID()
	if err != nil {
		return "", 0, err
	}
	// The list has the file of a control group for each hierarchy.
	enter := []string{"-c", `while [ "$1" != -- ]; do echo $$ >"$1" || exit; shift; done; shift; exec nsenter "$@"`, "sh"}
	enter = append(enter, host.CgroupFiles(c.cgroup())...)
	enter = append(enter, "--", "--target", strconv.Itoa(pid), "--mount", "--pid", "--net", "--uts", "--ipc", "--root", "--wd")
	if c.uid != 0 || c.gid != 0 {
		enter = append(enter, fmt.Sprintf("--setuid=%d", c.uid), fmt.Sprintf("--setgid=%d", c.gid))
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", append(append(enter, "--"), args...)...)
	cmd.Env = c.env
	// nsenter has the program as a child and does not forward signals.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	if ctx.Err() != nil {
		return out.String(), 0, ctx.Err()
	}
	if cmd.ProcessState == nil {
		return "", 0, err
	}
	return strings.TrimRight(out.String(), "\n"), exitCode(cmd.ProcessState), nil
}

// PID returns the process ID of the container's first process on this machine. It waits until the
// process exists.
func (c *Container) PID() (int, error) {
	for ; ; time.Sleep(2 * time.Millisecond) {
		select {
		case <-c.done:
			return 0, fmt.Errorf("%s: %w", c.ID, errEnded)
		default:
		}
		if pid := c.pid.Load(); pid != 0 {
			return int(pid), nil
		}
		// The runtime writes the file when the process exists.
		data, err := os.ReadFile(c.pidFile())
		if err != nil || len(data) == 0 {
			continue
		}
		for _, p := range processes() {
			if p.inHost(c.host.Init()) == string(data) {
				c.pid.Store(int64(p.PID))
				return p.PID, nil
			}
		}
	}
}

// Processes returns the processes of the container, the first one first.
func (c *Container) Processes() ([]Process, error) {
	first, err := c.PID()
	if err != nil {
		return nil, err
	}
	space := namespace(first, "pid")
	var out []Process
	for _, p := range processes() {
		if space != "" && namespace(p.PID, "pid") == space {
			out = append(out, p)
		}
	}
	return out, nil
}

// KillProcess sends a signal to the processes of a name in the container, and returns their number.
func (c *Container) KillProcess(name string, s unix.Signal) (int, error) {
	list, err := c.Processes()
	n := 0
	for _, p := range list {
		if p.Name != name {
			continue
		}
		n++
		// A process may have ended with the one before it.
		if e := unix.Kill(p.PID, s); e != nil && !errors.Is(e, unix.ESRCH) {
			err = errors.Join(err, e)
		}
	}
	return n, err
}
