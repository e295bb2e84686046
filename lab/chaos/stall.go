package chaos

import (
	"context"
	"time"
)

const (
	// watchdogEvery is how often it is looked whether this machine has time.
	watchdogEvery = 10 * time.Millisecond
	// lateFrom is what counts as late: more than a scheduler's turn or two.
	lateFrom = 20 * time.Millisecond
)

// watchdog reports times by which it was itself late, until ctx ends. Agents and
// daemons that run beside it had to wait as well then.
func watchdog(ctx context.Context, since time.Time, late func(Stall)) {
	tick := time.NewTimer(watchdogEvery)
	defer tick.Stop()
	for due := time.Now().Add(watchdogEvery); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		if by := now.Sub(due); by >= lateFrom {
			late(Stall{At: now.Sub(since), Late: by})
		}
		due = now.Add(watchdogEvery)
		tick.Reset(watchdogEvery)
	}
}
