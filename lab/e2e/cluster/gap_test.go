package cluster

import (
	"sync"
	"time"
)

// gap measures the longest time between two successes.
type gap struct {
	mu           sync.Mutex
	last         time.Time
	longest      time.Duration
	good, failed int
}

// record counts an attempt. A success counts from the time of its request.
func (g *gap) record(asked time.Time, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		g.failed++
		return
	}
	g.good++
	if !g.last.IsZero() {
		g.longest = max(g.longest, asked.Sub(g.last))
	}
	if asked.After(g.last) {
		g.last = asked
	}
}

// read returns the longest time, up to now, and the counts.
func (g *gap) read(now time.Time) (longest time.Duration, good, failed int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	longest = g.longest
	if !g.last.IsZero() {
		longest = max(longest, now.Sub(g.last))
	}
	return longest, g.good, g.failed
}
