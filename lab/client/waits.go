package client

import (
	"sync"
	"time"
)

// waits records what one client waits for: items that are numbered from 1, each due at some time,
// which complete in order.
type waits struct {
	mu        sync.Mutex
	due       []time.Time // of all items
	completed int         // number of items that completed
	longest   time.Duration
	lost      int // number of losses
}

// expect sets the deadline of an item: the next one, or again the last one if it has not completed.
func (w *waits) expect(n int, due time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case n == len(w.due)+1:
		w.due = append(w.due, due)
	case n == len(w.due) && n > w.completed:
		w.due[n-1] = due
	}
}

// complete records that all items up to n have completed.
func (w *waits) complete(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n = min(n, len(w.due)); n > w.completed {
		w.longest = max(w.longest, time.Since(w.due[w.completed]))
		w.completed = n
	}
}

// lose counts a loss.
func (w *waits) lose() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost++
}

// begin discards all delays so far.
func (w *waits) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.longest, w.lost = 0, 0
}

// since reports whether an item has completed that was due after a time.
func (w *waits) since(moment time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.completed > 0 && w.due[w.completed-1].After(moment)
}

// result returns the longest delay, that of incomplete items included, and the number of losses.
func (w *waits) result() (longest time.Duration, lost int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	longest = w.longest
	if w.completed < len(w.due) {
		longest = max(longest, time.Since(w.due[w.completed]))
	}
	return longest, w.lost
}
