// Package daemon keeps a daemon running with a configuration that follows the
// facts of the node: rendered, checked, put in place, and read by the daemon.
package daemon

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/vipgen/vipgen/agent/monitor"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/agent/supervise"
)

// Daemon is a daemon with its configuration file. The fields are set before Run.
type Daemon struct {
	Command supervise.Command
	// Conf is the path of the configuration file.
	Conf string
	// Render gives what the file is to hold now.
	Render func() ([]byte, error)
	Check  Checker
	// Reload makes the running daemon read the file, and returns when it serves
	// what the file says.
	Reload func(context.Context) error
	// Starting is called before every start; it may be nil.
	Starting func()
	// Ended is called at once when the daemon has ended by itself; it may be nil.
	Ended func()
	// Backoff is how long to wait before the daemon is started again.
	Backoff supervise.Backoff
	// Applied is called after every attempt to apply; it may be nil.
	Applied func()
	// Drain lets the daemon finish its work before it is stopped; it may be nil.
	Drain  func()
	Timing Timing
	Log    *slog.Logger

	once     sync.Once
	started  chan struct{} // closed when there is a configuration to start with
	applier  Applier
	debounce *Debouncer
	sup      supervise.Supervisor

	mu      sync.Mutex
	loaded  []byte // what the daemon was last told to read
	refusal state.Refusal
}

// init makes what Run and the other methods share.
func (d *Daemon) init() {
	d.once.Do(func() {
		d.started = make(chan struct{})
		d.applier = Applier{Path: d.Conf, Render: d.Render, Check: d.Check, Reload: d.reload, Log: d.Log}
		if d.Timing == (Timing{}) {
			d.Timing = DefaultTiming
		}
		d.debounce = NewDebouncer(d.Timing, d.apply)
		d.sup = supervise.Supervisor{Command: d.Command, Before: d.before, Ended: d.Ended, Backoff: d.Backoff, Log: d.Log}
	})
}

// Trigger asks for the configuration to be looked at. It never blocks.
func (d *Daemon) Trigger() {
	d.init()
	d.debounce.Trigger()
}

// Signal sends a signal to the daemon, or returns supervise.ErrNotRunning.
func (d *Daemon) Signal(s os.Signal) error { d.init(); return d.sup.Signal(s) }

// PID is the daemon's process ID, 0 while it does not run.
func (d *Daemon) PID() int { d.init(); return d.sup.PID() }

// Status says what was done so far.
func (d *Daemon) Status() state.Daemon {
	d.init()
	a := d.applier.Status()
	s := state.Daemon{
		PID: d.sup.PID(), Restarts: d.sup.Restarts(), Reloads: a.Applied, LastReload: a.AppliedAt,
		Refused: a.Refused, Failed: a.Failed, Problem: a.Problem,
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refusal.Why != "" {
		last := d.refusal
		s.LastRefusal = &last
	}
	return s
}

// Stuck says that the loop that applies configurations does not turn.
func (d *Daemon) Stuck() error {
	d.init()
	return d.debounce.Stuck()
}

// Health says what is wrong: the daemon does not run, or the loop that applies
// configurations does not turn. A configuration that was refused is nothing
// wrong: the last good one runs.
func (d *Daemon) Health() error {
	if err := d.Stuck(); err != nil {
		return err
	}
	if d.sup.PID() == 0 {
		return fmt.Errorf("%s does not run", filepath.Base(d.Command.Path))
	}
	return nil
}

// Metrics is what is shown of the daemon of that name.
func Metrics(name string, s *state.Daemon) monitor.Daemon {
	m := monitor.Daemon{
		Name: name, Wanted: true, Up: s.PID != 0, Restarts: s.Restarts,
		Applied: s.Reloads, AppliedAt: s.LastReload, Refused: s.Refused, Failed: s.Failed,
		Current: s.Problem == "",
	}
	if s.LastRefusal != nil {
		m.RefusedAt = s.LastRefusal.Time
	}
	return m
}

// Run keeps the daemon running until ctx ends, drains and stops it, and returns
// when nothing of it is left.
func (d *Daemon) Run(ctx context.Context) {
	d.init()
	var looping, running sync.WaitGroup
	looping.Go(func() { d.debounce.Run(ctx) })
	// The daemon outlives ctx until it is drained.
	alive, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	running.Go(func() {
		select {
		case <-ctx.Done():
		case <-d.started:
			d.sup.Run(alive)
		}
	})
	<-ctx.Done()
	looping.Wait()
	if d.Drain != nil && d.sup.PID() != 0 {
		d.Drain()
	}
	stop()
	running.Wait()
}

// apply is the loop's.
func (d *Daemon) apply(ctx context.Context) (changed bool, err error) {
	changed, err = d.applier.Apply(ctx)
	if err == nil && !changed && d.behind() {
		err = d.reload(ctx)
		changed = err == nil
	}
	d.remember(err)
	d.start(ctx, err)
	if d.Applied != nil {
		d.Applied()
	}
	return changed, err
}

// start lets the daemon start once there is something to start it with: what was
// applied, or what an earlier run of the agent left if the daemon takes it.
func (d *Daemon) start(ctx context.Context, applied error) {
	select {
	case <-d.started:
		return
	default:
	}
	if applied != nil {
		if _, err := os.Stat(d.Conf); err != nil || d.Check(ctx, d.Conf) != nil {
			return
		}
		d.Log.Warn("starting with the configuration of an earlier run", "file", d.Conf)
	}
	close(d.started)
}

func (d *Daemon) remember(err error) {
	if err == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if why := err.Error(); why != d.refusal.Why {
		d.refusal = state.Refusal{Time: time.Now().UTC(), Why: why}
	}
}

// before notes what the daemon is about to read. The file may be replaced while
// it starts, when nobody can be told to read it again: the loop looks afterwards.
func (d *Daemon) before(context.Context) error {
	d.load()
	if d.Starting != nil {
		d.Starting()
	}
	d.debounce.Trigger()
	return nil
}

func (d *Daemon) load() {
	data, _ := os.ReadFile(d.Conf)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.loaded = data
}

// behind says that the daemon runs with something else than the file.
func (d *Daemon) behind() bool {
	data, err := os.ReadFile(d.Conf)
	d.mu.Lock()
	defer d.mu.Unlock()
	return err == nil && d.loaded != nil && !bytes.Equal(data, d.loaded)
}

// reload leaves a daemon alone that does not run: it reads the file when it
// starts.
func (d *Daemon) reload(ctx context.Context) error {
	pid := d.sup.PID()
	if pid == 0 {
		return nil
	}
	data, err := os.ReadFile(d.Conf)
	if err != nil {
		return err
	}
	if err := d.Reload(ctx); err != nil {
		if d.sup.PID() != pid {
			return nil
		}
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.loaded = data
	return nil
}
