// Package ticker aligns the periodic work of a process, so that it wakes up once for all
// of it: a wake-up takes longer than most of what the agent does then.
package ticker

import "time"

// began has a monotonic reading, which a step of the wall clock does not change
// (hard case 27).
var began = time.Now()

// UntilNext is how long it is from now to the next tick: a moment that is a multiple
// of every after the process began. It is more than 0, and every at most.
func UntilNext(every time.Duration) time.Duration {
	since := time.Since(began) % every
	if since < 0 { // where a test has a clock of its own
		since += every
	}
	return every - since
}

// Ticker is a time.Ticker whose ticks are those of UntilNext. The next tick comes only
// after Next was called, so that none comes late because one before was.
type Ticker struct {
	// C gets the ticks.
	C     <-chan time.Time
	timer *time.Timer
	every time.Duration
}

// New makes a Ticker; its first tick is the next one. It need not be stopped, as a
// time.Ticker need not.
func New(every time.Duration) *Ticker {
	timer := time.NewTimer(UntilNext(every))
	return &Ticker{C: timer.C, timer: timer, every: every}
}

// Next has the next tick come.
func (t *Ticker) Next() { t.timer.Reset(UntilNext(t.every)) }

// Stop ends the ticks.
func (t *Ticker) Stop() { t.timer.Stop() }
