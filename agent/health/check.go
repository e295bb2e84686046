package health

import (
	"context"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/ticker"
)

// Check checks one fact repeatedly.
type Check struct {
	// Name is the name of the fact.
	Name string
	// Interval is the time between the starts of two probes, Confirm the one while a
	// change awaits confirmation. Probes start on the aligned ticks of the process; a
	// longer one is followed by the next at once: two never overlap.
	Interval, Confirm time.Duration
	// Timeout bounds a probe.
	Timeout time.Duration
	// Rise and Fall are the numbers of consecutive successes or failures that change the
	// result. The first probe counts at once, unless there is a Before.
	Rise, Fall int
	// Probe returns nil if the checked service works. It returns soon after ctx ends.
	Probe func(ctx context.Context) error
	// Close releases the resources of Probe when Run ends. It may be nil.
	Close func()
	// Before is the result of an earlier run, which stays until enough probes contradict
	// it; nil for none.
	Before *bool
	// Failed receives the reason of a failure detected elsewhere: it counts at once,
	// until Rise consecutive probes succeed. It may be nil.
	Failed <-chan string
	// Metrics counts the check; it may be nil.
	Metrics *Metrics
}

// Run probes until ctx ends, and reports the first result and every change. A service
// that refuses is noticed within Interval + (Fall-1) * Confirm, one that hangs within
// Interval + Fall * Timeout.
func (c Check) Run(ctx context.Context, report func(state.Fact)) {
	if c.Close != nil {
		defer c.Close()
	}
	defer c.Metrics.ended(c.Name)
	var s streak
	if c.Before != nil {
		s.known, s.healthy = true, *c.Before
		c.Metrics.result(c.Name, s.healthy, true)
	}
	tick := ticker.New(0)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case why := <-c.Failed:
			if s.recordFailure() {
				c.Metrics.result(c.Name, false, false)
				report(state.Fact{Name: c.Name, Why: why})
			}
			continue
		case <-tick.C:
		}
		first, began := !s.known, time.Now()
		probing, done := ticker.WithTimeout(ctx, c.Timeout)
		err := c.Probe(probing)
		done()
		if ctx.Err() != nil {
			return // interrupted
		}
		c.Metrics.probed(c.Name, time.Since(began), err)
		if s.record(err == nil, c.Rise, c.Fall) {
			c.Metrics.result(c.Name, s.healthy, first)
			f := state.Fact{Name: c.Name, OK: s.healthy}
			if err != nil { // the deciding failure
				f.Why = err.Error()
			}
			report(f)
		}
		pause := c.pause(s)
		if time.Since(began) >= pause {
			pause = 0
		}
		tick.Reset(pause)
	}
}

func (c Check) pause(s streak) time.Duration {
	if s.against > 0 && c.Confirm > 0 {
		return c.Confirm
	}
	return c.Interval
}

// streak counts consecutive probes that contradict the result.
type streak struct {
	known, healthy bool
	against        int
}

// recordFailure records a failure detected elsewhere, and reports whether it changes the
// result. Before a first result the first probe decides.
func (s *streak) recordFailure() bool {
	fell := s.known && s.healthy
	if fell {
		s.healthy, s.against = false, 0
	}
	return fell
}

// record records a probe and reports whether the result is new.
func (s *streak) record(ok bool, rise, fall int) bool {
	if !s.known {
		s.known, s.healthy = true, ok
		return true
	}
	if ok == s.healthy {
		s.against = 0
		return false
	}
	need := fall
	if ok {
		need = rise
	}
	if s.against++; s.against < need {
		return false
	}
	s.healthy, s.against = ok, 0
	return true
}
