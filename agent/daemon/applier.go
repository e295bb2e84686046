package daemon

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/atomicfile"
)

// Applier keeps one configuration file of one daemon. Its methods may be called
// from several goroutines.
type Applier struct {
	// Path of the file. A candidate for it is written to the same directory.
	Path string
	// Render gives what the file is to hold now.
	Render func() ([]byte, error)
	// Check asks the daemon's own parser about a candidate.
	Check Checker
	// Reload makes the running daemon read the file. A daemon that is not running
	// reads it when it starts, so that is no error.
	Reload func(context.Context) error
	// CheckTimeout bounds Check; 0 means DefaultCheckTimeout.
	CheckTimeout time.Duration
	Log          *slog.Logger

	applying sync.Mutex
	running  []byte // what the daemon was last told to read; nil: nothing yet

	mu     sync.Mutex
	status state.Config
	last   string // the problem that was reported last, with its bytes
}

// Checker says why a candidate is refused, or nil. It returns soon after ctx
// has ended.
type Checker func(ctx context.Context, candidate string) error

// DefaultCheckTimeout is many times what a check takes on a busy node.
const DefaultCheckTimeout = 10 * time.Second

// Errors of Apply, to be found with errors.Is. All of them leave the last good
// configuration in place, and all are worth another try later: an interface
// that keepalived misses may yet appear.
var (
	ErrRender  = errors.New("the configuration cannot be rendered")
	ErrRefused = errors.New("the daemon refuses the configuration")
	ErrWrite   = errors.New("the configuration cannot be written")
	ErrReload  = errors.New("the daemon does not reload")
)

// Status says what was done so far.
func (a *Applier) Status() state.Config {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.status
}

// Apply renders the file and, if it changed, checks, replaces and reloads it.
// It says whether the daemon was told to read a configuration. The first call
// always checks and reloads: a file that an earlier run left may not suit the
// daemon of today.
//
// When the daemon does not reload, the file from before is put back, since the
// daemon goes on with that one and is to find it if it has to start again.
func (a *Applier) Apply(ctx context.Context) (changed bool, err error) {
	a.applying.Lock()
	defer a.applying.Unlock()
	want, err := a.Render()
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrRender, err)
	} else {
		changed, err = a.put(ctx, want)
	}
	if ctx.Err() != nil && err != nil {
		return false, ctx.Err() // the agent ends: nobody's fault
	}
	a.report(want, changed, err)
	return changed, err
}

// put makes the daemon run the given bytes.
func (a *Applier) put(ctx context.Context, want []byte) (changed bool, err error) {
	before, err := os.ReadFile(a.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("%w: %w", ErrWrite, err)
	}
	existed := err == nil
	if a.running != nil && existed && bytes.Equal(want, a.running) && bytes.Equal(want, before) {
		return false, nil
	}
	if err := a.check(ctx, want); err != nil {
		return false, err
	}
	if _, err := atomicfile.Write(a.Path, want, fileMode); err != nil {
		return false, fmt.Errorf("%w: %w", ErrWrite, err)
	}
	if err := a.Reload(ctx); err != nil {
		err = fmt.Errorf("%w: %w", ErrReload, err)
		if existed {
			err = errors.Join(err, a.putBack(before))
		}
		return false, err
	}
	a.running = want
	return true, nil
}

// fileMode of configurations: they hold no secret but VRRPv2's password, which
// is in clear in every advert.
const fileMode = 0o644

// check has the daemon's parser look at a candidate. That is a file of its own,
// always of the same name, so that no number of unclean ends leaves more than
// one behind.
func (a *Applier) check(ctx context.Context, want []byte) error {
	candidate := filepath.Join(filepath.Dir(a.Path), "."+filepath.Base(a.Path)+".candidate")
	defer os.Remove(candidate)
	if err := os.WriteFile(candidate, want, fileMode); err != nil {
		return fmt.Errorf("%w: %w", ErrWrite, err)
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(a.CheckTimeout, DefaultCheckTimeout))
	defer cancel()
	if err := a.Check(ctx, candidate); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return nil
}

func (a *Applier) putBack(before []byte) error {
	if _, err := atomicfile.Write(a.Path, before, fileMode); err != nil {
		return fmt.Errorf("the configuration from before cannot be put back: %w", err)
	}
	return nil
}

// report logs and counts what is new.
func (a *Applier) report(want []byte, changed bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		if changed {
			a.status.Applied++
			a.status.AppliedAt = time.Now()
			a.Log.Info("configuration applied", "file", a.Path)
		} else if a.last != "" {
			a.Log.Info("the configuration that runs is right again", "file", a.Path)
		}
		a.last, a.status.Problem = "", ""
		return
	}
	a.status.Problem = err.Error()
	problem := err.Error() + "\x00" + string(want)
	if problem == a.last {
		return
	}
	a.last, a.status.RefusedAt = problem, time.Now()
	if errors.Is(err, ErrRefused) {
		a.status.Refused++
	} else {
		a.status.Failed++
	}
	a.Log.Error("configuration not applied, the last good one stays", "file", a.Path, "error", err)
}
