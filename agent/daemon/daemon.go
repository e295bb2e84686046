// Package daemon runs a daemon with a configuration that follows the facts of the node:
// it checks and writes the configuration, and reloads the daemon.
package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/agent/supervise"
	"github.com/vipgen/vipgen/internal/fileio"
)

// Daemon is a daemon with its configuration file. It runs from the first Apply with a
// running Target. The fields are set before that; the methods may be called by several
// goroutines.
type Daemon struct {
	// Process is the daemon, which runs while it is wanted.
	Process supervise.Supervisor
	// Conf is the path of the file. Candidates are written to the same directory.
	Conf string
	// Check checks a candidate with the daemon's own parser.
	Check Checker
	// Reload makes the running daemon read the file, and returns when it has, or will. A
	// daemon that ends meanwhile reads the file at its next start, so that is no error.
	Reload func(context.Context) error
	// Drain lets the daemon finish its work before Close stops it; it may be nil.
	Drain func()

	applying sync.Mutex
	read     []byte // configuration of the last reload; nil if unknown
	stop     func() // stops the process and waits; nil while it is not wanted

	mu     sync.Mutex
	wanted bool
	closed bool
	status state.Daemon
	last   string // problem reported last, with its configuration
}

// Target is the wanted state of a daemon.
type Target struct {
	// Conf is the configuration. Err is why it is unknown: then the file stays unchanged.
	Conf []byte
	Err  error
	// Stopped reports that the daemon must not run.
	Stopped bool
}

// Checker returns why a candidate is refused, or nil. It returns soon after ctx ends.
type Checker func(ctx context.Context, candidate string) error

// checkTimeout is many times the duration of a check on a busy node.
var checkTimeout = 10 * time.Second

// Errors of Apply. All leave the last valid configuration in place, and a later attempt
// may succeed: an interface that keepalived misses may appear.
var (
	errRender  = errors.New("the configuration cannot be rendered")
	errRefused = errors.New("the daemon refuses the configuration")
	errWrite   = errors.New("the configuration cannot be written")
	errReload  = errors.New("the daemon does not reload")
)

// Apply starts or stops the daemon; if its configuration changed, Apply checks it, writes
// it and reloads the daemon. It reports whether the daemon was started, stopped or
// reloaded. The first call always checks: the file of an earlier run may not suit today's
// daemon.
//
// If the reload fails, the previous file is restored: the daemon continues with it, and
// has to find it at its next start.
func (d *Daemon) Apply(ctx context.Context, t Target) (changed bool, err error) {
	d.applying.Lock()
	defer d.applying.Unlock()
	if t.Stopped {
		changed = d.end()
	}
	reloaded, err := d.put(ctx, t)
	if ctx.Err() != nil && err != nil {
		return changed, ctx.Err() // the agent stops: no failure
	}
	d.report(t.Conf, reloaded, err)
	if t.Stopped {
		return changed, err
	}
	return d.begin(ctx, err) || reloaded, err
}

// Accepts checks a future configuration with the daemon's parser.
func (d *Daemon) Accepts(ctx context.Context, conf []byte) error {
	d.applying.Lock()
	defer d.applying.Unlock()
	return d.try(ctx, conf)
}

// Wanted reports whether the daemon should run, by the last Apply.
func (d *Daemon) Wanted() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.wanted
}

func (d *Daemon) Status() state.Daemon {
	d.mu.Lock()
	s := d.status
	d.mu.Unlock()
	s.PID, s.Restarts = d.Process.PID(), d.Process.Restarts()
	return s
}

// Health returns an error while the daemon does not run. A refused configuration is none:
// the last valid one runs.
func (d *Daemon) Health() error {
	if d.Process.PID() == 0 {
		return fmt.Errorf("%s does not run", filepath.Base(d.Process.Command.Path))
	}
	return nil
}

// Close drains and stops the daemon for good. It does not wait for an Apply before it
// drains: clients must not notice that the agent ends.
func (d *Daemon) Close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	if d.Drain != nil && d.Process.PID() != 0 {
		d.Drain()
	}
	d.applying.Lock()
	defer d.applying.Unlock()
	d.end()
}

// begin runs the daemon from now on, if it has a configuration: the applied one, or the
// file of an earlier run if the daemon accepts it. It reports whether the daemon was not
// wanted before.
func (d *Daemon) begin(ctx context.Context, applied error) bool {
	if d.stop != nil {
		return false
	}
	if applied != nil {
		if _, err := os.Stat(d.Conf); err != nil || d.check(ctx, d.Conf) != nil {
			return false
		}
		d.Process.Log.Warn("daemon starts with the configuration of an earlier run", "file", d.Conf)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.wanted = true
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // Close ends it after draining
	var running sync.WaitGroup
	running.Go(func() { d.Process.Run(ctx) })
	d.stop = func() { cancel(); running.Wait() }
	return true
}

// end stops the daemon, and reports whether it was wanted.
func (d *Daemon) end() bool {
	if d.stop == nil {
		return false
	}
	d.mu.Lock()
	d.wanted = false
	d.mu.Unlock()
	d.stop()
	d.stop = nil
	return true
}

// put writes the file, and reloads the daemon if it runs.
func (d *Daemon) put(ctx context.Context, t Target) (reloaded bool, err error) {
	if t.Err != nil {
		return false, fmt.Errorf("%w: %w", errRender, t.Err)
	}
	before, err := os.ReadFile(d.Conf)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("%w: %w", errWrite, err)
	}
	existed := err == nil
	if d.read != nil && existed && bytes.Equal(t.Conf, d.read) && bytes.Equal(t.Conf, before) {
		return false, nil
	}
	if err := d.try(ctx, t.Conf); err != nil {
		return false, err
	}
	if _, err := fileio.Write(d.Conf, t.Conf, fileMode); err != nil {
		return false, fmt.Errorf("%w: %w", errWrite, err)
	}
	if err := d.reload(ctx); err != nil {
		d.read = nil // the daemon may still read the file, or start with it
		err = fmt.Errorf("%w: %w", errReload, err)
		if existed {
			err = errors.Join(err, d.restore(before))
		}
		return false, err
	}
	d.read = t.Conf
	return true, nil
}

// reload does nothing while the daemon does not run: it reads the file when it starts.
func (d *Daemon) reload(ctx context.Context) error {
	pid := d.Process.PID()
	if pid == 0 {
		return nil
	}
	err := d.Reload(ctx)
	if errors.Is(err, supervise.ErrNotRunning) || d.Process.PID() != pid {
		return nil
	}
	return err
}

// fileMode is the mode of configurations: their only secret is VRRPv2's password, which
// every advert contains in clear.
const fileMode = 0o644

// try checks a candidate with the daemon's parser. The candidate's file always has the
// same name, so that unclean ends leave at most one behind.
func (d *Daemon) try(ctx context.Context, conf []byte) error {
	candidate := filepath.Join(filepath.Dir(d.Conf), "."+filepath.Base(d.Conf)+".candidate")
	defer os.Remove(candidate)
	if err := os.WriteFile(candidate, conf, fileMode); err != nil {
		return fmt.Errorf("%w: %w", errWrite, err)
	}
	if err := d.check(ctx, candidate); err != nil {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	return nil
}

func (d *Daemon) check(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, checkTimeout, fmt.Errorf("no answer within %v", checkTimeout))
	defer cancel()
	return d.Check(ctx, path)
}

func (d *Daemon) restore(before []byte) error {
	if _, err := fileio.Write(d.Conf, before, fileMode); err != nil {
		return fmt.Errorf("the configuration from before cannot be put back: %w", err)
	}
	return nil
}

func (d *Daemon) report(conf []byte, reloaded bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		if reloaded {
			d.status.Reloads++
			d.status.LastReload = time.Now()
			d.Process.Log.Info("configuration applied", "file", d.Conf)
		} else if d.last != "" {
			d.Process.Log.Info("running configuration valid again", "file", d.Conf)
		}
		d.last, d.status.Problem = "", ""
		return
	}
	d.status.Problem = err.Error()
	problem := err.Error() + "\x00" + string(conf)
	if problem == d.last {
		return
	}
	d.last, d.status.LastRefusal = problem, &state.Refusal{Time: time.Now().UTC(), Why: err.Error()}
	if errors.Is(err, errRefused) {
		d.status.Refused++
	} else {
		d.status.Failed++
	}
	d.Process.Log.Error("configuration not applied: the last valid one stays in use", "file", d.Conf, "error", err)
}
