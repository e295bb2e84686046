// Package ticker aligns the periodic work of a process, so that it wakes up once for all
// of it: a wake-up takes longer than most of what the agent does then.
package ticker

import "time"

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
