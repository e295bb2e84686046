package events

import (
	"sync"
	"time"
)

// tickEvery is how often it is looked whether the agent runs.
const tickEvery = 100 * time.Millisecond

// onTime knows for how long the agent has run without a delay. Times are those since boot.
type onTime struct {
	mu          sync.Mutex
	since, last time.Duration
}

// begin says that the agent runs from now on.
func (o *onTime) begin(now time.Duration) { o.since, o.last = now, now }

// tick is called every tickEvery. It gives by how much it was late, 0 for less than LateFrom.
func (o *onTime) tick(now time.Duration) (late time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if late = o.overdue(now); late > 0 {
		o.since = now
	}
	o.last = now
	return late
}

// at says for how long the agent has been on time, or else by how much it is late now.
func (o *onTime) at(now time.Duration) (on, late time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if late = o.overdue(now); late > 0 {
		return 0, late
	}
	return max(now-o.since, 0), 0
}

func (o *onTime) overdue(now time.Duration) time.Duration {
	if late := now - o.last - tickEvery; late >= LateFrom {
		return late
	}
	return 0
}
