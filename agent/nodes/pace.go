package nodes

import "time"

// pace says when changes are handed on, so that a burst of them is handed on a
// few times (hard case 20).
type pace struct {
	// quiet is for how long nothing may change before a change is handed on.
	quiet time.Duration
	// max is the longest that a change waits, and the shortest time from one
	// handing on to the next.
	max time.Duration
}

// due is when to hand on changes of which the first came at first and the last
// at last. handed is when changes were last handed on; zero for never.
//
// A change on its own waits for quiet. While changes go on coming, they are
// handed on every max: without that, ones that come a little slower than quiet
// would be handed on one by one.
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
