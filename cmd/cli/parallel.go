package cli

import (
	"runtime"
	"sync"
)

// ordered runs n pieces of work on all cores and passes their results to done in order, one at
// a time. Few are in progress or done ahead, so that memory does not grow with n. It stops at
// the first error of done.
func ordered[T any](n int, work func(i int) T, done func(i int, t T) error) error {
	workers := min(runtime.GOMAXPROCS(0), n)
	if workers <= 1 {
		for i := range n {
			if err := done(i, work(i)); err != nil {
				return err
			}
		}
		return nil
	}
	ahead := 4 * workers
	results := make([]chan T, ahead)
	for i := range results {
		results[i] = make(chan T, 1)
	}
	next := make(chan int, ahead)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for i := range next {
				results[i%ahead] <- work(i)
			}
		})
	}
	defer group.Wait()
	defer close(next)
	given := 0
	for i := range n {
		for ; given < n && given < i+ahead; given++ {
			next <- given
		}
		if err := done(i, <-results[i%ahead]); err != nil {
			return err
		}
	}
	return nil
}
