// Package pulse tells a loop that goes on turning from one that is stuck.
package pulse

import (
	"fmt"
	"sync"
	"time"
)

// Pulse is a loop's. The zero value is that of a loop that has not begun, which
// is not stuck. Its time is monotonic, so steps of the clock change nothing (hard
// case 27).
type Pulse struct {
	mu   sync.Mutex
	last time.Time
}

// Beat says that the loop has turned just now.
func (p *Pulse) Beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = time.Now()
}

// Stuck returns an error when the last beat is longer ago than limit: the
// longest that a turn may take with the wait for the next one.
func (p *Pulse) Stuck(loop string, limit time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last.IsZero() {
		return nil
	}
	if ago := time.Since(p.last); ago > limit {
		return fmt.Errorf("%s is stuck: its last turn was %v ago", loop, ago.Round(time.Second))
	}
	return nil
}
