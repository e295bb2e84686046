package keepalived

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/vipgen/vipgen/agent/supervise"
)

// Process ID files, and what keepalived writes them for at SIGUSR1: its state.
const (
	pidDir   = "/run/keepalived"
	mainPID  = pidDir + "/keepalived.pid"
	vrrpPID  = pidDir + "/vrrp.pid"
	dumpFile = "/tmp/keepalived.data"
)

// logLimit is several times what keepalived logs when it starts or takes VIPs. It logs
// each packet that it rejects, and a host that forges a peer's address gets by the guard.
var logLimit = supervise.LogLimit{Rate: 4 << 10, Burst: 64 << 10}

// child is keepalived, supervised while it is wanted.
type child struct {
	command supervise.Command
	before  func(context.Context) error
	after   func(context.Context) error
	log     *slog.Logger
	// registered is the file with the process ID of its worker.
	registered string

	mu     sync.Mutex
	closed bool
	run    *run // nil while it is not wanted
}

// run is one time of being wanted.
type run struct {
	*supervise.Supervisor
	cancel context.CancelFunc
	done   chan struct{}
}

// newChild prepares keepalived, with all that it reads and writes below root.
// before runs before each of its starts, after when it
// has ended though it was wanted.
func newChild(program, root, conf string, before, after func(context.Context) error, log *slog.Logger) *child {
	below := func(path string) string { return filepath.Join(root, path) }
	d := &child{after: after, log: log, registered: below(vrrpPID)}
	// Without respawning: it would start its worker again behind the agent's
	// back, with the VIPs of the one that died still on the interfaces.
	d.command = supervise.Command{Path: program, Args: []string{
		"--dont-fork", "--dont-respawn", "--vrrp", "--log-console", "--no-syslog", "--log-detail",
		"--use-file", conf, "--pid", below(mainPID), "--vrrp_pid", below(vrrpPID),
	}, Log: logLimit}
	d.before = func(ctx context.Context) error {
		// It would take the process IDs of an earlier run for others of its kind,
		// and others would take what that saw for what this one sees.
		return errors.Join(os.MkdirAll(below(pidDir), 0o755), remove(below(mainPID)), remove(below(vrrpPID)), remove(below(dumpFile)), before(ctx))
	}
	return d
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// start sees to it that keepalived runs from now on, and says whether it was not
// wanted before.
func (d *child) start() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.run != nil || d.closed {
		return false
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &run{cancel: cancel, done: make(chan struct{}), Supervisor: &supervise.Supervisor{
		Command: d.command, Before: d.before, After: d.after, Log: d.log,
	}}
	go func() {
		defer close(r.done)
		r.Run(ctx)
	}()
	d.run = r
	return true
}

// stop ends keepalived, such that a peer takes over at once: it sends priority 0
// (RFC 9568 section 6.4.3). It says whether keepalived was wanted before.
func (d *child) stop() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.end()
}

// close is stop, after which there is no start.
func (d *child) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	d.end()
}

func (d *child) end() bool {
	if d.run == nil {
		return false
	}
	d.run.cancel()
	<-d.run.done
	d.run = nil
	return true
}

// startTime is many times what keepalived takes from its start until its worker can be
// told something.
const startTime = 5 * time.Second

// reload makes keepalived read its configuration, if it runs; else it does so
// when it starts. One that is starting may have read it already, and SIGHUP would end
// it, or be lost, before its worker has written its process ID (hard case 42): reload
// waits for that.
func (d *child) reload(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.run == nil {
		return nil
	}
	pid := d.run.PID()
	for deadline := time.Now().Add(startTime); pid != 0 && d.run.PID() == pid; {
		if _, err := os.Stat(d.registered); err == nil {
			err := d.run.Signal(syscall.SIGHUP)
			if errors.Is(err, supervise.ErrNotRunning) {
				return nil
			}
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("keepalived has not started within %v", startTime)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

// status says whether keepalived is wanted, its process ID (0 while it does not
// run) and how often it had to be started again.
func (d *child) status() (wanted bool, pid, restarts int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.run == nil {
		return false, 0, 0
	}
	return true, d.run.PID(), d.run.Restarts()
}
