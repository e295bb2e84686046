package supervise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/vipgen/vipgen/agent/logging"
)

// Supervisor keeps a daemon running.
type Supervisor struct {
	Command Command
	// Before runs before every start, for example to remove leftovers of an unclean end;
	// an error counts as a failed start. It may be nil.
	Before func(context.Context) error
	// Ended is called at once when the daemon's main process ended although it was
	// wanted; it may be nil.
	Ended func()
	// After runs when the daemon ended although it was wanted, before the delay of the
	// next start, to release what it held. It may be nil.
	After func(context.Context) error
	// Backoff is the delay between starts.
	Backoff Backoff
	// Log also receives the daemon's log if the command bounds it.
	Log *slog.Logger

	mu       sync.Mutex
	process  *Process
	restarts int

	failing logging.Transitions // owned by Run
	quiet   bool                // the same failure was logged before
}

// Run starts the daemon, and restarts it whenever it ends, without limit, until ctx ends.
// Then it stops the daemon, within the command's grace, and returns. A repeated failure
// is logged once, and again after the daemon has run well. Run may be called again after
// it has returned.
func (s *Supervisor) Run(ctx context.Context) {
	s.Backoff.last, s.quiet = 0, false
	for {
		began := time.Now()
		err := s.once(ctx)
		if ctx.Err() != nil {
			return
		}
		wait := s.Backoff.next(time.Since(began))
		s.quiet = s.failing.Error(s.Log, err, "daemon does not run: restarting it",
			"daemon runs again", "daemon", s.Command.Path)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		s.mu.Lock()
		s.restarts++
		s.mu.Unlock()
	}
}

// errEnded is the error of a daemon that ended with status 0.
var errEnded = errors.New("it ended")

// once runs the daemon until it or ctx ends, and returns why it ended; nil only if ctx
// ended.
func (s *Supervisor) once(ctx context.Context) error {
	if s.Before != nil {
		if err := s.Before(ctx); err != nil {
			return fmt.Errorf("before the start: %w", err)
		}
	}
	p, err := s.start()
	if err != nil {
		return err
	}
	if !s.quiet {
		s.Log.Info("daemon started", "daemon", s.Command.Path, "pid", p.PID())
	}
	defer s.forget()
	well := time.NewTimer(s.Backoff.wellAfter())
	defer well.Stop()
	ended := p.Ended()
	for {
		select {
		case <-ctx.Done():
			// With its full grace, although ctx has ended: after a proper stop a peer
			// takes over at once.
			p.Stop(context.WithoutCancel(ctx))
			s.Log.Info("daemon stopped", "daemon", s.Command.Path)
			return nil
		case <-ended:
			ended = nil
			if s.Ended != nil {
				s.Ended()
			}
		case <-p.Done():
			err := cmp.Or(p.Err(), errEnded)
			if s.After != nil {
				err = errors.Join(err, s.After(ctx))
			}
			return err
		case <-well.C:
			s.failing.Error(s.Log, nil, "", "daemon runs again", "daemon", s.Command.Path, "pid", p.PID())
			s.quiet = false
		}
	}
}

// start starts the daemon under the lock, so that signals sent meanwhile wait and are not
// lost.
func (s *Supervisor) start() (p *Process, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.Command
	c.Lines = logging.Lines(s.Log, filepath.Base(c.Path))
	p, err = Start(c)
	if err == nil {
		s.process = p
	}
	return p, err
}

func (s *Supervisor) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process = nil
}

// ErrNotRunning is returned for a signal while the daemon does not run.
var ErrNotRunning = errors.New("the daemon is not running")

// Signal sends a signal to the daemon's main process, or returns ErrNotRunning.
func (s *Supervisor) Signal(sig os.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return ErrNotRunning
	}
	err := s.process.Signal(sig)
	if errors.Is(err, os.ErrProcessDone) {
		return ErrNotRunning
	}
	return err
}

// PID returns the daemon's process ID, 0 while it does not run.
func (s *Supervisor) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return 0
	}
	return s.process.PID()
}

// Restarts returns the number of restarts.
func (s *Supervisor) Restarts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.restarts
}

// Backoff is the delay before a restart: Min, doubled every time up to Max, and Min again
// after the daemon ran for Well. Zero values mean 100 ms, 10 s and 30 s. With AtOnce, a
// daemon that ran for Well restarts without delay.
type Backoff struct {
	Min, Max, Well time.Duration
	AtOnce         bool

	last time.Duration
}

// next returns the delay after the daemon ran for that long.
func (b *Backoff) next(ran time.Duration) time.Duration {
	low, high := cmp.Or(b.Min, 100*time.Millisecond), cmp.Or(b.Max, 10*time.Second)
	switch {
	case b.AtOnce && ran >= b.wellAfter():
		b.last = 0
	case b.last == 0 || ran >= b.wellAfter():
		b.last = low
	default:
		b.last = min(2*b.last, high)
	}
	return b.last
}

func (b *Backoff) wellAfter() time.Duration { return cmp.Or(b.Well, 30*time.Second) }
