package health

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/ticker"
	"github.com/vipgen/vipgen/internal/vrrp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// runCheck runs a check on a fake clock, each quarter of a second, and returns the start times of
// probes and the reports, in milliseconds after a tick. A probe takes as long as slow says.
func runCheck(t *testing.T, length time.Duration, check Check, service func(ms int) error, slow func(ms int) time.Duration) (probes []int, reports []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(ticker.UntilNext(250 * time.Millisecond))
		began := time.Now()
		now := func() int { return int(time.Since(began).Milliseconds()) }
		ctx, cancel := context.WithTimeout(context.Background(), length)
		defer cancel()
		running := false
		check.Name, check.Interval, check.Confirm, check.Timeout = "it", 250*time.Millisecond, 50*time.Millisecond, 600*time.Millisecond
		check.Probe = func(ctx context.Context) error {
			if running {
				t.Error("two probes at once")
			}
			running = true
			defer func() { running = false }()
			at := now()
			probes = append(probes, at)
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(slow(at)):
				return service(at)
			}
		}
		check.Run(ctx, func(f state.Fact) {
			reports = append(reports, strings.TrimSpace(fmt.Sprintf("%d %v %s", now(), f.OK, f.Why)))
		})
	})
	return probes, reports
}

// between fails within a time.
func between(from, to int) func(int) error {
	return func(ms int) error {
		if ms >= from && ms < to {
			return errors.New("refused")
		}
		return nil
	}
}

func never(int) time.Duration { return 0 }

func TestCheck(t *testing.T) {
	for name, tt := range map[string]struct {
		service func(int) error
		slow    func(int) time.Duration
		probes  []int // the first of them
		reports []string
	}{
		"up from the start":   {between(-1, -1), never, []int{0, 250, 500, 750, 1000}, []string{"0 true"}},
		"down from the start": {between(0, 9999), never, []int{0, 250, 500, 750, 1000}, []string{"0 false refused"}},
		"one bad answer":      {between(500, 501), never, []int{0, 250, 500, 550, 750, 1000}, []string{"0 true"}},
		"goes down":           {between(300, 9999), never, []int{0, 250, 500, 550, 600, 750}, []string{"0 true", "600 false refused"}},
		"comes back":          {between(300, 1200), never, []int{0, 250, 500, 550, 600, 750, 1000, 1250, 1300, 1500}, []string{"0 true", "600 false refused", "1300 true"}},
		"slow but alive": {
			between(-1, -1), func(int) time.Duration { return 400 * time.Millisecond },
			[]int{0, 400, 800, 1200}, []string{"400 true"},
		},
		"a little slow: the pace is kept": {
			between(-1, -1), func(int) time.Duration { return 200 * time.Millisecond },
			[]int{0, 250, 500, 750}, []string{"200 true"},
		},
		"hangs": {
			between(-1, -1), func(ms int) time.Duration { return time.Duration(ms/300) * time.Hour },
			[]int{0, 250, 500, 1100, 1700, 2300}, []string{"0 true", "2300 false context deadline exceeded"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			probes, reports := runCheck(t, 3*time.Second, Check{Rise: 2, Fall: 3}, tt.service, tt.slow)
			if len(probes) < len(tt.probes) || !slices.Equal(probes[:len(tt.probes)], tt.probes) {
				t.Errorf("probes at %v, want %v", probes, tt.probes)
			}
			testkit.Equal(t, tt.reports, reports)
		})
	}
}

// The result of another check counts at once, and only if it is new; the usual number of probes
// is needed to reverse it.
func TestCheckFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(ticker.UntilNext(250 * time.Millisecond))
		began := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		failed := make(chan string, 1)
		go func() {
			for _, at := range []time.Duration{320, 340, 1020} {
				time.Sleep(time.Until(began.Add(at * time.Millisecond)))
				failed <- fmt.Sprintf("found out at %d", at)
			}
		}()
		check := Check{
			Name: "it", Interval: 250 * time.Millisecond, Confirm: 50 * time.Millisecond, Timeout: time.Second, Rise: 2, Fall: 2,
			Probe: func(context.Context) error { return nil }, Failed: failed,
		}
		var reports []string
		check.Run(ctx, func(f state.Fact) {
			reports = append(reports, fmt.Sprintf("%d %v %s", time.Since(began).Milliseconds(), f.OK, f.Why))
		})
		want := []string{"0 true ", "320 false found out at 320", "550 true ", "1020 false found out at 1020", "1300 true "}
		testkit.Equal(t, want, reports)
	})
}

// A check that is recreated because a group was added or removed keeps its last result: a
// single failed probe then moves no VIP.
func TestCheckContinues(t *testing.T) {
	for name, tt := range map[string]struct {
		before  bool
		bad     int // milliseconds of failing probes at first
		reports []string
	}{
		"one bad probe":               {true, 1, nil},
		"as many as it takes":         {true, 9999, []string{"100 false refused"}},
		"one good probe":              {false, 0, []string{"50 true"}},
		"as bad as before":            {false, 9999, nil},
		"bad at first, then it rises": {false, 1, []string{"300 true"}}, // the second probe is on the tick
	} {
		_, reports := runCheck(t, 400*time.Millisecond, Check{Rise: 2, Fall: 3, Before: &tt.before}, between(0, tt.bad), never)
		testkit.Equal(testkit.In(t, name), tt.reports, reports)
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
	testkit.Equal(testkit.In(t, "left"), so(FactAPI), b.Facts())
}

// TestHardCase45Unready: while no API server is ready, no node loses points for as long as an
// election of etcd may last, and every node does afterwards; a ready API server counts at once.
func TestHardCase45Unready(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newReadyCheck(9444)
		c.Close()
		c.Close = nil
		var unready atomic.Bool
		c.Probe = func(context.Context) error {
			if unready.Load() {
				return errors.New("status 503")
			}
			return nil
		}
		b := NewBoard()
		for _, f := range so(FactHAProxy, FactRedirect) {
			b.Set(f)
		}
		path := func() bool {
			_, terms := vrrp.PriorityTerms(&apiGroup, v1alpha1.RoleMaster)
			return terms[0].On(b.Health(&apiGroup))
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go c.Run(ctx, b.Set)
		expect := func(after time.Duration, want bool) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			testkit.Equal(t, want, path())
		}
		const margin = 2 * time.Second
		expect(margin, true)
		for range 3 {
			unready.Store(true)
			expect(vrrp.UnreadyAfter-margin, true)
			unready.Store(false)
			expect(margin, true)
		}
		unready.Store(true)
		expect(vrrp.UnreadyAfter+margin, false)
		unready.Store(false)
		expect(margin, true)
	})
}
