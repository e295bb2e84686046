// Package beat makes what a job does again and again happen at the same moments,
// so that the process wakes up once for all of it. Waking up takes longer than
// most of what the agent does then.
package beat

import "time"

// began has a monotonic reading, which a step of the wall clock does not change
// (hard case 27).
var began = time.Now()

// Next is how long it is from now to the next beat: a moment that is a multiple
// of every after the process began. It is more than 0, and every at most.
func Next(every time.Duration) time.Duration {
	since := time.Since(began) % every
	if since < 0 { // where a test has a clock of its own
		since += every
	}
	return every - since
}
