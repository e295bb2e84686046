package health

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/ticker"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// trackFiles are written by a Monitor; track.Files are some.
type trackFiles interface {
	// Set makes the file of a term say 1 or 0. There is one of each term of the groups.
	Set(term string, on bool) (changed bool, err error)
	// Repeat writes all files once more as they are.
	Repeat() error
}

// Monitor keeps the track files of a node in step with what is known about it.
type Monitor struct {
	Board *Board
	Files trackFiles
	// Groups are those whose VIPs the node can hold, Role is the node's.
	Groups []v1alpha1.Group
	Role   string
	// Metrics measures the checks; it may be nil.
	Metrics *Metrics
	Log     *slog.Logger

	terms [][]vrrp.Term // of Groups
}

// Track files are written again as they are: what is written between keepalived's reading
// of a file and its inotify watch on it, at a start or a reload, it would never see
// otherwise.
const (
	// repeatEvery is how often, for as long as repeatFor after the last change: many times
	// what keepalived takes from one to the other on a busy node.
	repeatEvery = time.Second
	repeatFor   = 10 * time.Second
	// repeatSeldom is how often from then on, in times of repeatEvery.
	repeatSeldom = 10
)

// Run runs the checks and writes the track files until ctx ends. It returns
// when all that it started has ended. One Monitor at a time runs on a Board.
func (m *Monitor) Run(ctx context.Context, checks []Check) {
	for i := range m.Groups {
		_, terms := vrrp.Terms(&m.Groups[i], m.Role)
		m.terms = append(m.terms, terms)
	}
	var running sync.WaitGroup
	defer running.Wait()
	for _, c := range checks {
		c.Metrics = m.Metrics
		if f, known := m.Board.Get(c.Name); known {
			c.Before = &f.OK
		}
		running.Go(func() { c.Run(ctx, m.report) })
	}
	repeat := ticker.New(repeatEvery)
	defer repeat.Stop()
	var writing logging.Transitions
	changed, left := time.Now(), 0
	for again := false; ; {
		any, err := m.write()
		tried := any || err != nil
		if tried {
			changed = time.Now()
		}
		if again && (left == 0 || time.Since(changed) < repeatFor) {
			err = errors.Join(err, m.Files.Repeat())
			left, tried = repeatSeldom, true
		}
		if tried { // a turn that had nothing to write says nothing of writing
			writing.Error(m.Log, err, "track files cannot be written: priorities stay as they are", "track files can be written again")
		}
		select {
		case <-ctx.Done():
			return
		case <-m.Board.changed:
			again = false
		case <-repeat.C:
			repeat.Next()
			again, left = true, max(left-1, 0)
		}
	}
}

func (m *Monitor) report(f state.Fact) {
	if f.OK {
		m.Log.Info("check succeeds", "check", f.Name)
	} else {
		m.Log.Warn("check fails", "check", f.Name, "error", f.Why)
	}
	m.Board.Set(f)
}

// write brings all files up to date, as far as it can, and says whether any changed.
func (m *Monitor) write() (any bool, failed error) {
	for i := range m.Groups {
		g := &m.Groups[i]
		health := m.Board.health(g)
		for _, t := range m.terms[i] {
			on := t.On(health)
			changed, err := m.Files.Set(t.Name, on)
			if err != nil {
				failed = err
			}
			if changed {
				any = true
				m.Log.Info("priority term changed", "group", g.Name, "term", t.Name, "on", on, "points", t.Points, "meaning", t.Meaning)
			}
		}
	}
	return any, failed
}
