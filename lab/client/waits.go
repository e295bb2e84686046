package client

import (
	"sync"
	"time"
)

// waits is what one client waits for: things that are numbered from 1, each due at some
// time, which come in order.
type waits struct {
	mu      sync.Mutex
	due     []time.Time // of all
	come    int         // how many have
	longest time.Duration
	lost    int // what the client held and lost
}

// expect says when a thing is due: the next one, or again the last one if that has not
// come.
func (w *waits) expect(n int, due time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case n == len(w.due)+1:
		w.due = append(w.due, due)
	case n == len(w.due) && n > w.come:
		w.due[n-1] = due
	}
}

// came says that all up to the one of this number have come.
func (w *waits) came(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n = min(n, len(w.due)); n > w.come {
		w.longest = max(w.longest, time.Since(w.due[w.come]))
		w.come = n
	}
}

// loses counts a loss.
func (w *waits) loses() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost++
}

// begin forgets what was waited for until now.
func (w *waits) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.longest, w.lost = 0, 0
}

// since says whether anything has come that was due after a moment.
func (w *waits) since(moment time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.come > 0 && w.due[w.come-1].After(moment)
}

// result is the longest time that anything was late by, what is still waited for
// included, and how often something was lost.
func (w *waits) result() (longest time.Duration, lost int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	longest = w.longest
	if w.come < len(w.due) {
		longest = max(longest, time.Since(w.due[w.come]))
	}
	return longest, w.lost
}
