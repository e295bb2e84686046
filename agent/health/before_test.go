package health

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/ticker"
)

// A check that is recreated because a group was added or removed keeps its last result: a
// single failed probe then moves no VIP.
func TestCheckContinues(t *testing.T) {
	tests := map[string]struct {
		before  bool
		bad     int // number of failing probes at first
		reports []string
	}{
		"one bad probe":               {true, 1, nil},
		"as many as it takes":         {true, 9, []string{"100 false"}},
		"one good probe":              {false, 0, []string{"50 true"}},
		"as bad as before":            {false, 9, nil},
		"bad at first, then it rises": {false, 1, []string{"300 true"}}, // the second probe is on the tick
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(ticker.UntilNext(250 * time.Millisecond))
				began, probes := time.Now(), 0
				ctx, cancel := context.WithTimeout(context.Background(), 400*time.Millisecond)
				defer cancel()
				var reports []string
				check := Check{
					Name: "it", Interval: 250 * time.Millisecond, Confirm: 50 * time.Millisecond, Timeout: time.Second, Rise: 2, Fall: 3,
					Before: &tt.before,
					Probe: func(context.Context) error {
						if probes++; probes <= tt.bad {
							return errors.New("refused")
						}
						return nil
					},
				}
				check.Run(ctx, func(f state.Fact) {
					reports = append(reports, fmt.Sprintf("%d %v", time.Since(began).Milliseconds(), f.OK))
				})
				testkit.Equal(t, tt.reports, reports)
			})
		})
	}
}

// The result of a removed group is forgotten.
func TestForget(t *testing.T) {
	b := NewBoard()
	for _, name := range FactsOf(&ingressGroup) {
		b.Set(state.Fact{Name: name, OK: true})
	}
	b.Set(state.Fact{Name: FactAPI, OK: true})
	<-b.changed
	b.Forget(FactsOf(&ingressGroup)...)
	<-b.changed
	if got := b.Facts(); !slices.Equal(got, so(FactAPI)) {
		t.Errorf("left: %v", got)
	}
}
