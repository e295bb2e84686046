package ticker

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestUntilNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began = time.Now()
		for _, tt := range []struct{ after, every, want time.Duration }{
			{0, 250, 250},
			{1, 250, 249},
			{249, 250, 1},
			{250, 250, 250},
			{251, 50, 49},
			{251, 1000, 749},
		} {
			time.Sleep(time.Until(began.Add(tt.after * time.Millisecond)))
			if got := UntilNext(tt.every * time.Millisecond); got != tt.want*time.Millisecond {
				t.Errorf("after %d ms, every %d ms: %v, want %d ms", tt.after, tt.every, got, tt.want)
			}
		}
	})
}
