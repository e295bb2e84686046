package testkit

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

const (
	// lookEvery is how often a Stopwatch looks whether this machine has time.
	lookEvery = 5 * time.Millisecond
	// quiet is by how much a machine with time to spare is late at most: a
	// scheduler's turn or two.
	quiet = 25 * time.Millisecond
)

// Stopwatch finds out whether this machine was quiet while something was measured.
type Stopwatch struct {
	stop chan struct{}
	ends sync.Once
	done sync.WaitGroup
	late time.Duration // the longest; read after done
}

// StartStopwatch begins to look whether the machine is quiet, until End.
func StartStopwatch() *Stopwatch {
	s := &Stopwatch{stop: make(chan struct{})}
	s.done.Go(s.run)
	return s
}

func (s *Stopwatch) run() {
	tick := time.NewTimer(lookEvery)
	defer tick.Stop()
	for due := time.Now().Add(lookEvery); ; {
		select {
		case <-s.stop:
			return
		case <-tick.C:
		}
		now := time.Now()
		s.late = max(s.late, now.Sub(due))
		due = now.Add(lookEvery)
		tick.Reset(lookEvery)
	}
}

// End ends it and gives by how much the machine was late at the longest. It may be
// called again.
func (s *Stopwatch) End() (late time.Duration) {
	s.ends.Do(func() { close(s.stop) })
	s.done.Wait()
	return s.late
}

// Promise holds what was measured against what is promised. On a machine that was
// quiet all the time, more than that is an error. On any other it says nothing of the
// code, and the test says so; but it is an error as well if it is more than busy,
// which no load explains.
// Times are held against times, and counts, such as of requests, against counts.
func Promise[N int | time.Duration](t testing.TB, what string, got, promised, busy N, late time.Duration) {
	t.Helper()
	switch {
	case got <= promised:
	case late <= quiet:
		t.Errorf("%s: %v, and %v is promised (this machine was late by %v at most)", what, got, promised, late)
	case got > busy:
		t.Errorf("%s: %v, and at most %v is explained by this machine, which was late by %v itself", what, got, busy, late)
	default:
		unheld(t, late, fmt.Sprintf("%s: %v, promised %v", what, got, promised))
	}
}

// Explained is for what must not happen at all, such as a move of a VIP: it is an error,
// unless this machine was late by more than enough, which makes it happen. Then the test says
// so, and goes on.
func Explained(t testing.TB, what string, late, enough time.Duration) bool {
	t.Helper()
	if late <= enough {
		t.Errorf("%s (this machine was late by %v at most)", what, late)
		return false
	}
	unheld(t, late, what)
	return true
}

func unheld(t testing.TB, late time.Duration, what string) {
	t.Helper()
	t.Logf("NOT HELD AGAINST ITS PROMISE, this machine was late by %v itself: %s", late, what)
}
