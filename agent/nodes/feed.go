package nodes

import (
	"context"
	"sync"
)

// feed sends the latest of a series of values to all subscribers. A slow subscriber
// misses values, never the latest one.
type feed[T any] struct {
	mu     sync.Mutex
	latest *T
	subs   map[chan T]struct{}
}

// subscribe returns a channel with the latest value, if any, and later ones until ctx
// ends.
func (f *feed[T]) subscribe(ctx context.Context) <-chan T {
	c := make(chan T, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.latest != nil {
		c <- *f.latest
	}
	if f.subs == nil {
		f.subs = map[chan T]struct{}{}
	}
	f.subs[c] = struct{}{}
	context.AfterFunc(ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.subs, c)
	})
	return c
}

func (f *feed[T]) publish(v T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.latest = &v
	for c := range f.subs {
		select {
		case <-c: // not read yet
		default:
		}
		c <- v
	}
}

func (f *feed[T]) current() (v T, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.latest == nil {
		return v, false
	}
	return *f.latest, true
}
