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
	// Before runs before every start, such as to remove what an unclean end left
	// behind; an error counts as a failed start. It may be nil.
	Before func(context.Context) error
	// Ended is called at once when the daemon's main process has ended though it was
	// wanted; it may be nil.
	Ended func()
	// After runs when the daemon has ended though it was wanted, before the wait for
	// the next start: what it held is not to stay meanwhile. It may be nil.
	After func(context.Context) error
	// Backoff is how long to wait between starts.
	Backoff Backoff
	// Log also gets what the daemon logs, where the command bounds that.
	Log *slog.Logger

	mu       sync.Mutex
	process  *Process
	restarts int

	failing logging.Transitions // of Run's goroutine
	quiet   bool                // it failed like this before
}

// Run starts the daemon, and again whenever it ends, until ctx ends. Then it
// stops the daemon, which takes at most the command's grace, and returns. There
// is nothing that it gives up on. A daemon that goes on ending in the same way is
// logged the first time, and once more when it has run well. Run may be called again
// after it has returned.
func (s *Supervisor) Run(ctx context.Context) {
	s.Backoff.last, s.quiet = 0, false
	for {
		began := time.Now()
		err := s.once(ctx)
		if ctx.Err() != nil {
			return
		}
		wait := s.Backoff.next(time.Since(began))
		s.quiet = s.failing.Error(s.Log, err, "the daemon does not run; it is started again and again",
			"the daemon runs well again", "daemon", s.Command.Path)
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

// errEnded is for a daemon that ended without a complaint.
var errEnded = errors.New("it ended")

// once runs the daemon until it or ctx ends, and says how it did. It returns nil
// only if ctx has ended.
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
	well := time.NewTimer(s.Backoff.well())
	defer well.Stop()
	ended := p.Ended()
	for {
		select {
		case <-ctx.Done():
			// Within the grace, although ctx has ended: a proper stop is what makes a
			// peer take over at once.
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
			s.failing.Error(s.Log, nil, "", "the daemon runs well again", "daemon", s.Command.Path, "pid", p.PID())
			s.quiet = false
		}
	}
}

// start starts the daemon such that whoever asks for it meanwhile waits: what it is to
// be told, as that a file has changed which it may have read already, is not lost.
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

// ErrNotRunning says that there is no daemon to signal now.
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

// PID is the daemon's process ID, 0 while it is not running.
func (s *Supervisor) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return 0
	}
	return s.process.PID()
}

// Restarts is how often the daemon was started again.
func (s *Supervisor) Restarts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.restarts
}

// Backoff is how long to wait before a daemon is started again: Min, doubled
// every time up to Max, and Min again after the daemon ran for Well. Zero values
// are 100 ms, 10 s and 30 s. With AtOnce, a daemon that ran for Well does not wait.
type Backoff struct {
	Min, Max, Well time.Duration
	AtOnce         bool

	last time.Duration
}

// next returns the wait after a daemon ran for that long.
func (b *Backoff) next(ran time.Duration) time.Duration {
	low, high := cmp.Or(b.Min, 100*time.Millisecond), cmp.Or(b.Max, 10*time.Second)
	switch {
	case b.AtOnce && ran >= b.well():
		b.last = 0
	case b.last == 0 || ran >= b.well():
		b.last = low
	default:
		b.last = min(2*b.last, high)
	}
	return b.last
}

func (b *Backoff) well() time.Duration { return cmp.Or(b.Well, 30*time.Second) }
