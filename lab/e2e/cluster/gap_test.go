package cluster

import (
	"sync"
	"time"
)

// gap measures the longest time between two events.
type gap struct {
	mu      sync.Mutex
	last    time.Time
	longest time.Duration
}

func (g *gap) record(at time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.last.IsZero() {
		g.longest = max(g.longest, at.Sub(g.last))
	}
	g.last = at
}

// read returns the longest time, up to now.
func (g *gap) read(now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.last.IsZero() {
		return 0
	}
	return max(g.longest, now.Sub(g.last))
}
