// Package ticker aligns the periodic work of a process, so that it wakes up once for all
// of it: a wake-up takes longer than most of what the agent does then.
package ticker

import (
	"context"
	"time"
)

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
// after Next or Reset was called, so that none comes late because one before was.
type Ticker struct {
	// C gets the ticks.
	C     <-chan time.Time
	alarm alarm
	every time.Duration
}

// alarm is a time.Timer, or what a clock has for one.
type alarm interface {
	Reset(d time.Duration) bool
	Stop() bool
}

// New makes a Ticker; its first tick is the next one, or comes at once if every is 0.
func New(every time.Duration) *Ticker {
	t := &Ticker{}
	if c := precise.Load(); c != nil {
		t.C, t.alarm = c.ticks()
	} else {
		timer := time.NewTimer(time.Hour)
		t.C, t.alarm = timer.C, timer
	}
	t.Reset(every)
	return t
}

// Next has the next tick come.
func (t *Ticker) Next() { t.Reset(t.every) }

// Reset has the next of other ticks come, or one at once if every is 0. It says how long
// that will be.
func (t *Ticker) Reset(every time.Duration) time.Duration {
	var wait time.Duration
	if t.every = every; every > 0 {
		wait = UntilNext(every)
	}
	t.alarm.Reset(wait)
	return wait
}

// WithTimeout gives a context that ends after that time, with the cause
// context.DeadlineExceeded. It may not say beforehand when that will be.
func WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if c := precise.Load(); c != nil {
		return c.timeout(ctx, d)
	}
	return context.WithTimeout(ctx, d)
}

// Stop ends the ticks.
func (t *Ticker) Stop() { t.alarm.Stop() }
