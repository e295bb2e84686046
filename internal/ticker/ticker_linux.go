// Package ticker aligns the periodic work of a process, so that it wakes up once for all of it:
// a wake-up takes longer than most of the agent's work.
package ticker

import (
	"context"
	"time"
)

// began has a monotonic reading, which a step of the wall clock does not change
// (hard case 27).
var began = time.Now()

// UntilNext returns the time from now to the next tick: a multiple of every after the start of
// the process. It is more than 0, and every at most.
func UntilNext(every time.Duration) time.Duration {
	since := time.Since(began) % every
	if since < 0 { // with a test's clock
		since += every
	}
	return every - since
}

// Ticker is a time.Ticker with the ticks of UntilNext. The next tick comes only after Next or
// Reset, so that none is late because one before was.
type Ticker struct {
	// C gets the ticks.
	C     <-chan time.Time
	alarm alarm
	every time.Duration
}

// alarm is a time.Timer, or the clock's replacement.
type alarm interface {
	Reset(d time.Duration) bool
	Stop() bool
}

// New returns a Ticker; its first tick is the next one, or comes at once if every is 0.
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

// Next arms the next tick.
func (t *Ticker) Next() { t.Reset(t.every) }

// Reset arms the next tick of another interval, or one at once if every is 0. It returns the
// time until then.
func (t *Ticker) Reset(every time.Duration) time.Duration {
	var wait time.Duration
	if t.every = every; every > 0 {
		wait = UntilNext(every)
	}
	t.alarm.Reset(wait)
	return wait
}

// WithTimeout returns a context that ends after that time, with the cause
// context.DeadlineExceeded. It may have no deadline.
func WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if c := precise.Load(); c != nil {
		return c.timeout(ctx, d)
	}
	return context.WithTimeout(ctx, d)
}

func (t *Ticker) Stop() { t.alarm.Stop() }
