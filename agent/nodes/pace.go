package nodes

import "time"

// pace coalesces bursts of changes (hard case 20).
type pace struct {
	// quiet is how long nothing may change before a delivery.
	quiet time.Duration
	// max is the longest delay of a change, and the least interval between deliveries.
	max time.Duration
}

// due returns when to deliver changes, the first of which came at first and the last at
// last. handed is the time of the last delivery; zero for none.
//
// A single change waits for quiet. Continuous changes are delivered every max: otherwise
// changes a little slower than quiet would be delivered one by one.
func (p pace) due(first, last, handed time.Time) time.Time {
	due := last.Add(p.quiet)
	if latest := first.Add(p.max); due.After(latest) {
		due = latest
	}
	if earliest := handed.Add(p.max); !handed.IsZero() && due.Before(earliest) {
		due = earliest
	}
	return due
}
