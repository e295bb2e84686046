package liveness

import (
	"fmt"
	"sync"
	"time"
)

// Watchdog detects a stuck loop. The zero value is that of a loop that has not begun, which is
// not stuck. Its time is monotonic, so steps of the clock change nothing (hard case 27).
type Watchdog struct {
	mu   sync.Mutex
	last time.Time
}

// Reset records that the loop runs.
func (w *Watchdog) Reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = time.Now()
}

// Stuck returns an error if the last Reset is longer ago than limit: the longest time of an
// iteration with the wait for the next one.
func (w *Watchdog) Stuck(loop string, limit time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last.IsZero() {
		return nil
	}
	if ago := time.Since(w.last); ago > limit {
		return fmt.Errorf("%s is stuck: its last turn was %v ago", loop, ago.Round(time.Second))
	}
	return nil
}
