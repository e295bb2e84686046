package ticker

import (
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
