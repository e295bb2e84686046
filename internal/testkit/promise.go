package testkit

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

const (
	// lookEvery is the interval at which a Stopwatch checks the machine's delay.
	pollInterval = 5 * time.Millisecond
	// quiet is the longest delay of an idle machine: a scheduler's turn or two.
	idleDelay = 25 * time.Millisecond
)

// Stopwatch measures whether this machine was idle during a measurement.
type Stopwatch struct {
	stop chan struct{}
	ends sync.Once
	done sync.WaitGroup
	late time.Duration // the longest; read after done
}

// StartStopwatch starts measuring the machine's delay, until End.
func StartStopwatch() *Stopwatch {
	s := &Stopwatch{stop: make(chan struct{})}
	s.done.Go(s.run)
	return s
}

func (s *Stopwatch) run() {
	tick := time.NewTimer(pollInterval)
	defer tick.Stop()
	for due := time.Now().Add(pollInterval); ; {
		select {
		case <-s.stop:
			return
		case <-tick.C:
		}
		now := time.Now()
		s.late = max(s.late, now.Sub(due))
		due = now.Add(pollInterval)
		tick.Reset(pollInterval)
	}
}

// End stops it and returns the longest delay of the machine. It may be called again.
func (s *Stopwatch) End() (late time.Duration) {
	s.ends.Do(func() { close(s.stop) })
	s.done.Wait()
	return s.late
}

// Promise compares a measured value with the promised one. On a machine that was idle all the
// time, more than that is an error. Otherwise it proves nothing about the code, and the test
// logs that; but more than busy is an error as well, which no load explains. Times are compared
// with times, and counts, such as of requests, with counts.
func Promise[N int | time.Duration](t testing.TB, what string, got, promised, busy N, late time.Duration) {
	t.Helper()
	switch {
	case got <= promised:
	case late <= idleDelay:
		t.Errorf("%s: %v, and %v is promised (this machine was late by %v at most)", what, got, promised, late)
	case got > busy:
		t.Errorf("%s: %v, and at most %v is explained by this machine, which was late by %v itself", what, got, busy, late)
	default:
		logLate(t, late, fmt.Sprintf("%s: %v, promised %v", what, got, promised))
	}
}

// Explained is for events that must not happen at all, such as a move of a VIP: it is an error,
// unless this machine was late by more than enough, which causes it. Then the test logs that,
// and continues.
func Explained(t testing.TB, what string, late, enough time.Duration) bool {
	t.Helper()
	if late <= enough {
		t.Errorf("%s (this machine was late by %v at most)", what, late)
		return false
	}
	logLate(t, late, what)
	return true
}

func logLate(t testing.TB, late time.Duration, what string) {
	t.Helper()
	t.Logf("NOT HELD AGAINST ITS PROMISE, this machine was late by %v itself: %s", late, what)
}
