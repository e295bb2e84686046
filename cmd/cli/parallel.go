package cli

import (
	"runtime"
	"sync"
)

// ordered does n pieces of work on all cores and hands what comes of them to
// done in their order, one at a time. No more than a few are under way or done
// ahead, so that memory does not grow with n. It stops when done gives an error.
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
