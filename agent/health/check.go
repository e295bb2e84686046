package health

import (
	"context"
	"time"
)

// Check is one thing that is looked at again and again.
type Check struct {
	// Name is that of the fact that it finds out.
	Name string
	// Interval is the time between the starts of two probes; Confirm is that
	// while a change waits for its confirmation. A probe that takes longer than
	// that delays the next one: there are never two at once.
	Interval, Confirm time.Duration
	// Timeout bounds a probe.
	Timeout time.Duration
	// Rise and Fall are how many probes in a row must succeed or fail for the
	// check to change. The very first probe counts at once.
	Rise, Fall int
	// Probe returns nil if the thing works. It returns soon after ctx has ended.
	Probe func(ctx context.Context) error
	// Close lets go of what Probe keeps open, when Run ends. It may be nil.
	Close func()
}

// Result is what a check has come to.
type Result struct {
	Name    string
	Healthy bool
	// Err is that of the probe that decided; nil if Healthy.
	Err error
}

// Run probes until ctx ends, and reports the first result and every change from
// then on. A service that refuses is noticed within Interval + (Fall-1) *
// Confirm, one that hangs within Interval + Fall * Timeout.
func (c Check) Run(ctx context.Context, report func(Result)) {
	if c.Close != nil {
		defer c.Close()
	}
	var s streak
	timer := time.NewTimer(0)
	defer timer.Stop()
	next := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		err := c.probe(ctx)
		if ctx.Err() != nil {
			return // it was cut short
		}
		if s.add(err == nil, c.Rise, c.Fall) {
			report(Result{Name: c.Name, Healthy: s.healthy, Err: err})
		}
		// From the planned start, not from the end: the pace is even.
		if next = next.Add(c.pause(s)); next.Before(time.Now()) {
			next = time.Now()
		}
		timer.Reset(time.Until(next))
	}
}

func (c Check) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	return c.Probe(ctx)
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
