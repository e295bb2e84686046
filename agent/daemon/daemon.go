// Package daemon keeps a daemon running with a configuration that follows the
// facts of the node: checked, put in place, and read by the daemon.
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
	"github.com/vipgen/vipgen/internal/atomicfile"
)

// Daemon is a daemon with its configuration file. It runs from the first Apply that
// wants it on. The fields are set before that; its methods may be called from several
// goroutines.
type Daemon struct {
	// Process is the daemon, which is run as long as it is wanted.
	Process supervise.Supervisor
	// Conf is the path of the file. A candidate for it is written to the same directory.
	Conf string
	// Check asks the daemon's own parser about a candidate.
	Check Checker
	// Reload makes the running daemon read the file, and returns when it has, or will. A
	// daemon that ends meanwhile reads it when it starts, so that is no error.
	Reload func(context.Context) error
	// Drain lets the daemon finish its work before Close stops it; it may be nil.
	Drain func()

	applying sync.Mutex
	read     []byte // what the daemon was last told to read; nil: nothing, or nobody knows
	stop     func() // ends the process and waits for that; nil while it is not wanted

	mu     sync.Mutex
	wanted bool
	closed bool
	status state.Daemon
	last   string // the problem that was reported last, with its bytes
}

// Target is how a daemon is to be.
type Target struct {
	// Conf is what its file is to hold. Err says why that is not known: then the file
	// stays as it is.
	Conf []byte
	Err  error
	// Stopped says that it is not to run.
	Stopped bool
}

// Checker says why a candidate is refused, or nil. It returns soon after ctx
// has ended.
type Checker func(ctx context.Context, candidate string) error

// checkTimeout is many times what a check takes on a busy node.
var checkTimeout = 10 * time.Second

// Errors of Apply. All of them leave the last good configuration in place, and all
// are worth another try later: an interface that keepalived misses may yet appear.
var (
	errRender  = errors.New("the configuration cannot be rendered")
	errRefused = errors.New("the daemon refuses the configuration")
	errWrite   = errors.New("the configuration cannot be written")
	errReload  = errors.New("the daemon does not reload")
)

// Apply starts or stops the daemon and, if its configuration changed, checks it, puts
// it in place and has the daemon read it. It says whether the daemon was started,
// stopped or told to read its file. The first call always checks: a file that an
// earlier run left may not suit the daemon of today.
//
// When the daemon does not reload, the file from before is put back, since the
// daemon goes on with that one and is to find it if it has to start again.
func (d *Daemon) Apply(ctx context.Context, t Target) (changed bool, err error) {
	d.applying.Lock()
	defer d.applying.Unlock()
	if t.Stopped {
		changed = d.end()
	}
	told, err := d.put(ctx, t)
	if ctx.Err() != nil && err != nil {
		return changed, ctx.Err() // the agent ends: nobody's fault
	}
	d.report(t.Conf, told, err)
	if t.Stopped {
		return changed, err
	}
	return d.begin(ctx, err) || told, err
}

// Takes asks the daemon's parser about a configuration that is not to be applied yet.
func (d *Daemon) Takes(ctx context.Context, conf []byte) error {
	d.applying.Lock()
	defer d.applying.Unlock()
	return d.try(ctx, conf)
}

// Wanted says whether the daemon is to run, as it was applied last.
func (d *Daemon) Wanted() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.wanted
}

// Status says what was done so far.
func (d *Daemon) Status() state.Daemon {
	d.mu.Lock()
	s := d.status
	d.mu.Unlock()
	s.PID, s.Restarts = d.Process.PID(), d.Process.Restarts()
	return s
}

// Health is an error while the daemon does not run. A configuration that it refused is
// none: the last good one runs.
func (d *Daemon) Health() error {
	if d.Process.PID() == 0 {
		return fmt.Errorf("%s does not run", filepath.Base(d.Process.Command.Path))
	}
	return nil
}

// Close drains and stops the daemon, after which it is not started any more. It does
// not wait for an Apply before it drains: clients must not notice that the agent ends.
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

// begin has the daemon run from now on, if there is something to start it with: what
// was applied, or what an earlier run of the agent left if the daemon takes it. It says
// whether it was not wanted before.
func (d *Daemon) begin(ctx context.Context, applied error) bool {
	if d.stop != nil {
		return false
	}
	if applied != nil {
		if _, err := os.Stat(d.Conf); err != nil || d.check(ctx, d.Conf) != nil {
			return false
		}
		d.Process.Log.Warn("starting with the configuration of an earlier run", "file", d.Conf)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.wanted = true
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // Close ends it, once it is drained
	var running sync.WaitGroup
	running.Go(func() { d.Process.Run(ctx) })
	d.stop = func() { cancel(); running.Wait() }
	return true
}

// end stops the daemon, and says whether it was wanted.
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

// put makes the file hold what it is to, and the daemon read it if it runs.
func (d *Daemon) put(ctx context.Context, t Target) (told bool, err error) {
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
	if _, err := atomicfile.Write(d.Conf, t.Conf, fileMode); err != nil {
		return false, fmt.Errorf("%w: %w", errWrite, err)
	}
	if err := d.reload(ctx); err != nil {
		d.read = nil // it may come to read the file yet, or be started with it
		err = fmt.Errorf("%w: %w", errReload, err)
		if existed {
			err = errors.Join(err, d.putBack(before))
		}
		return false, err
	}
	d.read = t.Conf
	return true, nil
}

// reload leaves a daemon alone that does not run: it reads the file when it starts.
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

// fileMode of configurations: they hold no secret but VRRPv2's password, which
// is in clear in every advert.
const fileMode = 0o644

// try has the daemon's parser look at a candidate. That is a file of its own,
// always of the same name, so that no number of unclean ends leaves more than
// one behind.
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

func (d *Daemon) putBack(before []byte) error {
	if _, err := atomicfile.Write(d.Conf, before, fileMode); err != nil {
		return fmt.Errorf("the configuration from before cannot be put back: %w", err)
	}
	return nil
}

func (d *Daemon) report(conf []byte, told bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		if told {
			d.status.Reloads++
			d.status.LastReload = time.Now()
			d.Process.Log.Info("configuration applied", "file", d.Conf)
		} else if d.last != "" {
			d.Process.Log.Info("the configuration that runs is right again", "file", d.Conf)
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
	d.Process.Log.Error("configuration not applied, the last good one stays", "file", d.Conf, "error", err)
}
