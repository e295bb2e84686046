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

// Terms receives the values of priority terms, such as TrackFiles.
type Terms interface {
	// Set writes 1 or 0 to the file of a term of the groups.
	Set(term string, on bool) (changed bool, err error)
	// Repeat writes all files again unchanged.
	Repeat() error
}

// Monitor keeps the track files of a node in step with its facts.
type Monitor struct {
	Board *Board
	Files Terms
	// Groups are the groups that the node can hold, Role is the node's.
	Groups []v1alpha1.Group
	Role   string
	// Metrics counts the checks; it may be nil.
	Metrics *Metrics
	Log     *slog.Logger

	terms [][]vrrp.Term // of Groups
}

// Track files are rewritten unchanged: keepalived would never see a write between its
// reading of a file and its inotify watch, at a start or a reload.
const (
	// repeatEvery is the interval until repeatFor after the last change: many times what
	// keepalived takes between the two on a busy node.
	repeatEvery = time.Second
	repeatFor   = 10 * time.Second
	// repeatSeldom is the interval after that, in multiples of repeatEvery.
	repeatSeldom = 10
)

// Run runs the checks and writes the track files until ctx ends and everything has
// stopped. Only one Monitor at a time may run on a Board.
func (m *Monitor) Run(ctx context.Context, checks []Check) {
	for i := range m.Groups {
		_, terms := vrrp.PriorityTerms(&m.Groups[i], m.Role)
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
		if tried { // a turn without writes shows neither success nor failure
			writing.Error(m.Log, err, "cannot write track files: priorities stay unchanged", "track files written again")
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

// write updates all files, as far as possible, and reports whether any changed.
func (m *Monitor) write() (any bool, failed error) {
	for i := range m.Groups {
		g := &m.Groups[i]
		health := m.Board.Health(g)
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
