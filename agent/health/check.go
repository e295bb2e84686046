package health

import (
	"context"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/ticker"
)

// Check is one thing that is looked at again and again.
type Check struct {
	// Name is that of the fact that it finds out.
	Name string
	// Interval is the time between the starts of two probes; Confirm is that
	// while a change waits for its confirmation. Probes start on the ticks of the
	// process, with those of other checks; one that takes longer than that is
	// followed by the next one at once: there are never two at the same time.
	Interval, Confirm time.Duration
	// Timeout bounds a probe.
	Timeout time.Duration
	// Rise and Fall are how many probes in a row must succeed or fail for the
	// check to change. The very first probe counts at once, unless there
	// is a Before.
	Rise, Fall int
	// Probe returns nil if the thing works. It returns soon after ctx has ended.
	Probe func(ctx context.Context) error
	// Close lets go of what Probe keeps open, when Run ends. It may be nil.
	Close func()
	// Before is what an earlier run came to, which stands until as many probes say
	// otherwise; nil if there was none.
	Before *bool
	// Failed gets why the thing works no more from somebody who has found that out already:
	// it counts at once, and lasts until Rise probes in a row succeed. It may be nil.
	Failed <-chan string
	// Metrics measures the check; it may be nil.
	Metrics *Metrics
}

// Run probes until ctx ends, and reports the first result and every change from
// then on. A service that refuses is noticed within Interval + (Fall-1) *
// Confirm, one that hangs within Interval + Fall * Timeout.
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
			if s.fail() {
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
			return // it was cut short
		}
		c.Metrics.probed(c.Name, time.Since(began), err)
		if s.add(err == nil, c.Rise, c.Fall) {
			c.Metrics.result(c.Name, s.healthy, first)
			f := state.Fact{Name: c.Name, OK: s.healthy}
			if err != nil { // which decided
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

// streak counts probes in a row that contradict the state.
type streak struct {
	known, healthy bool
	against        int
}

// fail takes in that the thing works no more, and says whether that is new. Where nothing
// is known yet the first probe decides.
func (s *streak) fail() bool {
	fell := s.known && s.healthy
	if fell {
		s.healthy, s.against = false, 0
	}
	return fell
}

// add takes a probe in and says whether the state is new.
func (s *streak) add(ok bool, rise, fall int) bool {
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
