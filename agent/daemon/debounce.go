package daemon

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/vipgen/vipgen/internal/liveness"
)

// Debouncer turns triggers, however many, into a bounded number of applies (hard
// case 20).
type Debouncer struct {
	timing Timing
	apply  func(context.Context) (changed bool, err error)

	triggered chan struct{}
	settled   atomic.Bool
	now       atomic.Bool
	watchdog  liveness.Watchdog
}

// Timing of a Debouncer. All of it is measured by the monotonic clock, so that steps
// of the wall clock change nothing (hard case 27).
type Timing struct {
	// Quiet is how long no trigger must come before an apply, MaxDelay how long
	// an apply is put off at most when they keep coming.
	Quiet, MaxDelay time.Duration
	// MinInterval is the least time between two reloads.
	MinInterval time.Duration
	// RetryMin is the wait after a first failure, doubled every time to RetryMax.
	RetryMin, RetryMax time.Duration
}

// DefaultTiming applies a single change within 150 ms, and a flood of them no
// more often than every 3 seconds.
var DefaultTiming = Timing{
	Quiet:       100 * time.Millisecond,
	MaxDelay:    time.Second,
	MinInterval: 3 * time.Second,
	RetryMin:    time.Second,
	RetryMax:    30 * time.Second,
}

// NewDebouncer makes a Debouncer of DefaultTiming, which calls apply when it is time. An
// error makes it try again; changed says that a daemon was reloaded.
func NewDebouncer(apply func(context.Context) (changed bool, err error)) *Debouncer {
	return &Debouncer{apply: apply, timing: DefaultTiming, triggered: make(chan struct{}, 1)}
}

// Trigger asks for an apply. It never blocks.
func (b *Debouncer) Trigger() {
	select {
	case b.triggered <- struct{}{}:
	default: // one is waiting to be seen already
	}
}

// Changed asks for an apply, without a wait for Quiet if the change has settled: one
// that was debounced where it was seen is not to wait twice. It never blocks.
func (b *Debouncer) Changed(settled bool) {
	if settled {
		b.settled.Store(true)
	}
	b.Trigger()
}

// Now asks for an apply at once: for what other nodes do in the same moment, or what
// does harm until it is applied. It never blocks.
func (b *Debouncer) Now() {
	b.now.Store(true)
	b.Trigger()
}

// Run applies when it was triggered, until ctx ends.
func (b *Debouncer) Run(ctx context.Context) {
	var p pending
	b.watchdog.Reset()
	timer := time.NewTimer(0)
	defer timer.Stop()
	timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.triggered:
			p.trigger(time.Now())
			p.settled = b.settled.Swap(false) || p.settled
			p.now = b.now.Swap(false) || p.now
		case <-timer.C:
			p.first, p.settled, p.now = time.Time{}, false, false
			changed, err := b.apply(ctx)
			b.watchdog.Reset()
			p.applied(time.Now(), changed, err, b.timing)
		}
		if due := p.due(b.timing); due.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(time.Until(due))
		}
	}
}

// stuckAfter is longer than the slowest apply, a check and a reload of HAProxy of
// 70 seconds together, and the 30 seconds between two of them.
const stuckAfter = 2 * time.Minute

// Stuck returns an error when the loop, or whoever was to trigger it, does not go
// on: a job triggers it every 30 seconds although nothing was said to have changed.
func (b *Debouncer) Stuck() error {
	return b.watchdog.Stuck("the loop that applies configurations", stuckAfter)
}

// pending is what a loop has to remember; zero times mean "none".
type pending struct {
	first, last time.Time // triggers not yet acted on
	reloaded    time.Time
	retry       time.Time
	wait        time.Duration // before the last retry
	settled     bool          // not to be put off for more triggers to come
	now         bool          // not to be put off at all
}

func (p *pending) trigger(now time.Time) {
	if p.first.IsZero() {
		p.first = now
	}
	p.last = now
}

func (p *pending) applied(now time.Time, changed bool, err error, t Timing) {
	if changed || err != nil {
		p.reloaded = now
	}
	if err == nil {
		p.retry, p.wait = time.Time{}, 0
		return
	}
	p.wait = min(max(2*p.wait, t.RetryMin), t.RetryMax)
	p.retry = now.Add(p.wait)
}

// due says when to apply, or never.
func (p *pending) due(t Timing) time.Time {
	if p.now {
		return p.last
	}
	due := p.retry
	if !p.first.IsZero() {
		quiet, late := p.last.Add(t.Quiet), p.first.Add(t.MaxDelay)
		if p.settled {
			quiet = p.last
		}
		if late.Before(quiet) {
			quiet = late
		}
		if due.IsZero() || quiet.Before(due) {
			due = quiet
		}
	}
	if !due.IsZero() && !p.reloaded.IsZero() {
		if next := p.reloaded.Add(t.MinInterval); due.Before(next) {
			due = next
		}
	}
	return due
}
