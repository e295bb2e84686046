package ticker

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

// Tickers of one process tick together, whenever they were created and however long a receiver
// takes over a tick.
func TestTicker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began = time.Now()
		time.Sleep(130 * time.Millisecond)
		ticks := func(every, work time.Duration) (at []int64) {
			tick := New(every * time.Millisecond)
			defer tick.Stop()
			for range 3 {
				<-tick.C
				at = append(at, time.Since(began).Milliseconds())
				time.Sleep(work * time.Millisecond)
				tick.Next()
			}
			return at
		}
		for _, tt := range []struct {
			every, work time.Duration
			want        []int64 // after the last multiple of a second
		}{
			{100, 0, []int64{200, 300, 400}},
			{500, 10, []int64{500, 1000, 1500}},
			{100, 120, []int64{100, 300, 500}},
			{1000, 0, []int64{1000, 2000, 3000}},
		} {
			start := time.Since(began).Truncate(time.Second).Milliseconds()
			got := ticks(tt.every, tt.work)
			for i := range got {
				got[i] -= start
			}
			testkit.Equal(testkit.In(t, tt.every, tt.work), tt.want, got)
			time.Sleep(UntilNext(time.Second) + time.Millisecond)
		}
	})
}

// inUse makes the package use a kernel clock.
func inUse(t *testing.T) *clock {
	t.Helper()
	testkit.Must(t, Precise())
	t.Cleanup(func() { precise.Store(nil) })
	return precise.Load()
}

// nobodyWaits fails if a goroutine waits for the clock.
func (c *clock) nobodyWaits(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.waiting); n > 0 {
		t.Errorf("%d still wait", n)
	}
}

// No tick is early, and none is lost, however many there are.
func TestClockTicks(t *testing.T) {
	c := inUse(t)
	var all sync.WaitGroup
	for _, every := range []time.Duration{0, time.Millisecond, 3 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond} {
		for range 5 {
			all.Go(func() {
				tick := New(every)
				defer tick.Stop()
				for range 10 {
					due := time.Now().Add(tick.Reset(every))
					if at := <-tick.C; at.Before(due) {
						t.Errorf("every %v: a tick %v before it is due", every, due.Sub(at))
					}
				}
				tick.Next()
				<-tick.C
			})
		}
	}
	all.Wait()
	c.nobodyWaits(t)
}

// A stopped or reset ticker does not tick, even if the clock has already expired.
func TestClockStops(t *testing.T) {
	c := inUse(t)
	rung, waits := New(0), New(time.Hour)
	testkit.Await(t, "the clock", func() bool { return len(rung.C) == 1 }, func() string { return "it did not ring" })
	rung.Reset(time.Hour)
	waits.Stop()
	testkit.Equal(t, 0, len(rung.C))
	late := New(time.Millisecond) // the clock was set for an hour
	<-late.C
	testkit.Equal(t, 0, len(rung.C)+len(waits.C))
	rung.Reset(0)
	testkit.Await(t, "the clock", func() bool { return len(rung.C) == 1 }, func() string { return "it did not ring" })
	rung.Stop()
	testkit.Equal(t, 0, len(rung.C))
	c.nobodyWaits(t)
}

func TestTimeout(t *testing.T) {
	for name, use := range map[string]func(*testing.T){"kernel": func(t *testing.T) { inUse(t) }, "Go": func(*testing.T) {}} {
		t.Run(name, func(t *testing.T) {
			use(t)
			ended, cancel := WithTimeout(t.Context(), time.Millisecond)
			<-ended.Done()
			testkit.Is(testkit.In(t, "after its time"), context.Cause(ended), context.DeadlineExceeded)
			cancel()
			long, cancel := WithTimeout(t.Context(), time.Hour)
			if long.Err() != nil {
				t.Errorf("before its time: %v", long.Err())
			}
			cancel()
			testkit.Is(testkit.In(t, "cancelled"), context.Cause(long), context.Canceled)
			parent, end := context.WithCancel(t.Context())
			child, cancel := WithTimeout(parent, time.Hour)
			defer cancel()
			end()
			<-child.Done()
			testkit.Is(testkit.In(t, "its parent was cancelled"), context.Cause(child), context.Canceled)
			cancel()
			if c := precise.Load(); c != nil {
				c.nobodyWaits(t)
			}
		})
	}
}
