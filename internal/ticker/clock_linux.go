package ticker

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vipgen/vipgen/internal/rawio"
)

// precise is the clock of what is made from now on; nil for Go's timers.
var precise atomic.Pointer[clock]

// Precise has a timer of the kernel wake up the process for the ticks and time-outs of this
// package that are made from now on. Go's timers end an epoll_wait(2), which counts in whole
// milliseconds: the process wakes up early, waits for a millisecond more, and as the timer is
// overdue then, a thread of Go's runtime (sysmon) looks every 70 µs whether somebody sees to
// it. With ten ticks a second that was a third of what the agent took of a core.
//
// After an error Go's timers are used.
func Precise() error {
	c, err := newClock()
	if err == nil {
		precise.Store(c)
	}
	return err
}

// clock wakes up those who wait for a moment, for as long as the process lives.
type clock struct {
	timer *rawio.Timer

	mu      sync.Mutex
	waiting []*clockAlarm // a few
	set     time.Time     // when the timer ends; zero if it is not set
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

// wakeUpAt has the timer end then, if it does not end before.
func (c *clock) wakeUpAt(at time.Time) {
	if c.set.IsZero() || at.Before(c.set) {
		c.set = at
		c.timer.Set(time.Until(at))
	}
}

// clockAlarm is an alarm of a clock.
type clockAlarm struct {
	clock *clock
	at    time.Time         // of one that waits
	ring  func(t time.Time) // with the clock locked: it does not wait, and sets no alarm
	quiet func()            // takes back what nobody has noticed
}

// ticks gives an alarm that sends the time.
func (c *clock) ticks() (<-chan time.Time, *clockAlarm) {
	ch := make(chan time.Time, 1)
	return ch, &clockAlarm{
		clock: c,
		ring:  func(t time.Time) { ch <- t }, // there is room: it was taken back
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

// forget says whether it waited, and has it wait no more.
func (a *clockAlarm) forget() bool {
	a.quiet()
	before := len(a.clock.waiting)
	a.clock.waiting = slices.DeleteFunc(a.clock.waiting, func(w *clockAlarm) bool { return w == a })
	return len(a.clock.waiting) < before
}
