package daemon

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/vipgen/vipgen/internal/liveness"
)

// Debouncer coalesces any number of triggers into a bounded number of applies (hard case
// 20).
type Debouncer struct {
	timing Timing
	apply  func(context.Context) (changed bool, err error)

	triggered chan struct{}
	settled   atomic.Bool
	now       atomic.Bool
	watchdog  liveness.Watchdog
}

// Timing is the timing of a Debouncer, by the monotonic clock, so that steps of the wall
// clock have no effect (hard case 27).
type Timing struct {
	// Quiet is the time without triggers before an apply, MaxDelay the longest delay
	// while they keep coming.
	Quiet, MaxDelay time.Duration
	// MinInterval is the least interval between two reloads.
	MinInterval time.Duration
	// RetryMin is the delay after a first failure, doubled every time up to RetryMax.
	RetryMin, RetryMax time.Duration
}

// DefaultTiming applies a single change within 150 ms, and continuous ones at most every
// 3 seconds.
var DefaultTiming = Timing{
	Quiet:       100 * time.Millisecond,
	MaxDelay:    time.Second,
	MinInterval: 3 * time.Second,
	RetryMin:    time.Second,
	RetryMax:    30 * time.Second,
}

// NewDebouncer returns a Debouncer with DefaultTiming that calls apply. After an error it
// tries again; changed reports that a daemon was reloaded.
func NewDebouncer(apply func(context.Context) (changed bool, err error)) *Debouncer {
	return &Debouncer{apply: apply, timing: DefaultTiming, triggered: make(chan struct{}, 1)}
}

// Trigger requests an apply. It never blocks.
func (b *Debouncer) Trigger() {
	select {
	case b.triggered <- struct{}{}:
	default: // one is pending
	}
}

// Changed requests an apply, without waiting for Quiet if the change has settled, because
// its source debounced it already. It never blocks.
func (b *Debouncer) Changed(settled bool) {
	if settled {
		b.settled.Store(true)
	}
	b.Trigger()
}

// Now requests an apply at once: for changes that other nodes make in the same moment, or
// that do harm until they are applied. It never blocks.
func (b *Debouncer) Now() {
	b.now.Store(true)
	b.Trigger()
}

// Run applies after triggers until ctx ends.
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

// stuckAfter is longer than the slowest apply, a check and a reload of HAProxy of 70
// seconds together, and the 30 seconds between two triggers.
const stuckAfter = 2 * time.Minute

// Stuck returns an error if the loop, or its source of triggers, hangs: a job triggers it
// at least every 30 seconds.
func (b *Debouncer) Stuck() error {
	return b.watchdog.Stuck("the loop that applies configurations", stuckAfter)
}

// pending is the state of the loop; zero times mean "none".
type pending struct {
	first, last time.Time // triggers not yet acted on
	reloaded    time.Time
	retry       time.Time
	wait        time.Duration // delay of the last retry
	settled     bool          // do not wait for further triggers
	now         bool          // do not wait at all
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

// due returns the time of the next apply; zero for none.
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
