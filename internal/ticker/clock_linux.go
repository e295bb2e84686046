package ticker

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vipgen/vipgen/internal/rawio"
)

// precise is the clock of new timers; nil for Go's timers.
var precise atomic.Pointer[clock]

// Precise makes new tickers and time-outs of this package use a timer of the kernel. Go's
// timers end an epoll_wait(2), which counts in whole milliseconds: the process wakes up early,
// waits for a millisecond more, and as the timer is overdue then, a thread of Go's runtime
// (sysmon) polls every 70 µs until it is handled. With ten ticks a second that was a third of
// the agent's CPU time.
//
// After an error Go's timers are used.
func Precise() error {
	c, err := newClock()
	if err == nil {
		precise.Store(c)
	}
	return err
}

// clock wakes up waiting alarms, for as long as the process lives.
type clock struct {
	timer *rawio.Timer

	mu      sync.Mutex
	waiting []*clockAlarm // a few
	set     time.Time     // when the timer expires; zero if it is not set
}

func newClock() (*clock, error) {
	timer, err := rawio.NewTimer()
	if err != nil {
		return nil, err
	}
	c := &clock{timer: timer}
	go c.run()
	return c, nil
}

func (c *clock) run() {
	for {
		if c.timer.Wait() != nil {
			time.Sleep(10 * time.Millisecond) // a coarse clock is better than none
		}
		c.mu.Lock()
		now := time.Now()
		c.waiting = slices.DeleteFunc(c.waiting, func(a *clockAlarm) bool {
			due := !a.at.After(now)
			if due {
				a.ring(now)
			}
			return due
		})
		c.set = time.Time{}
		for _, a := range c.waiting {
			c.wakeUpAt(a.at)
		}
		c.mu.Unlock()
	}
}

// wakeUpAt sets the timer to expire then, unless it expires before.
func (c *clock) wakeUpAt(at time.Time) {
	if c.set.IsZero() || at.Before(c.set) {
		c.set = at
		c.timer.Set(time.Until(at))
	}
}

type clockAlarm struct {
	clock *clock
	at    time.Time         // while it waits
	ring  func(t time.Time) // with the clock locked: it must not block, nor set an alarm
	quiet func()            // withdraws an unnoticed alarm
}

// ticks returns an alarm that sends the time.
func (c *clock) ticks() (<-chan time.Time, *clockAlarm) {
	ch := make(chan time.Time, 1)
	return ch, &clockAlarm{
		clock: c,
		ring:  func(t time.Time) { ch <- t }, // there is room: an unread one was withdrawn
		quiet: func() {
			select {
			case <-ch:
			default:
			}
		},
	}
}

// timeout is context.WithTimeout.
func (c *clock) timeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	a := &clockAlarm{clock: c, ring: func(time.Time) { cancel(context.DeadlineExceeded) }, quiet: func() {}}
	a.Reset(d)
	return ctx, func() { a.Stop(); cancel(nil) }
}

func (a *clockAlarm) Reset(d time.Duration) bool {
	a.clock.mu.Lock()
	defer a.clock.mu.Unlock()
	waited := a.forget()
	a.at = time.Now().Add(d)
	a.clock.waiting = append(a.clock.waiting, a)
	a.clock.wakeUpAt(a.at)
	return waited
}

func (a *clockAlarm) Stop() bool {
	a.clock.mu.Lock()
	defer a.clock.mu.Unlock()
	return a.forget()
}

// forget cancels the alarm and reports whether it was waiting.
func (a *clockAlarm) forget() bool {
	a.quiet()
	before := len(a.clock.waiting)
	a.clock.waiting = slices.DeleteFunc(a.clock.waiting, func(w *clockAlarm) bool { return w == a })
	return len(a.clock.waiting) < before
}
