package events

import (
	"sync"
	"time"
)

// tickInterval is the interval of checks that the agent runs.
const tickInterval = 100 * time.Millisecond

// onTime tracks how long the agent has run without a delay. Times are since boot.
type onTime struct {
	mu          sync.Mutex
	since, last time.Duration
}

func (o *onTime) begin(now time.Duration) { o.since, o.last = now, now }

// tick is called every tickEvery. It returns the delay, 0 for less than LateFrom.
func (o *onTime) tick(now time.Duration) (late time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if late = o.overdue(now); late > 0 {
		o.since = now
	}
	o.last = now
	return late
}

// at returns how long the agent has been on time, or else its current delay.
func (o *onTime) at(now time.Duration) (on, late time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if late = o.overdue(now); late > 0 {
		return 0, late
	}
	return max(now-o.since, 0), 0
}

func (o *onTime) overdue(now time.Duration) time.Duration {
	if late := now - o.last - tickInterval; late >= LateFrom {
		return late
	}
	return 0
}
