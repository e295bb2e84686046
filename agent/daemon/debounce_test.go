package daemon

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

var timing = Timing{Quiet: 100 * time.Millisecond, MaxDelay: time.Second, MinInterval: 3 * time.Second, RetryMin: 4 * time.Second, RetryMax: 10 * time.Second}

func newDebouncer(apply func(context.Context) (bool, error)) *Debouncer {
	b := NewDebouncer(apply)
	b.timing = timing
	return b
}

// runDebouncer runs the loop on a fake clock with triggers at the given times, and returns when
// it applied, all in milliseconds.
func runDebouncer(t *testing.T, triggers []int, length time.Duration, apply func(call int) (bool, error)) []int {
	t.Helper()
	var at []int
	synctest.Test(t, func(*testing.T) {
		began := time.Now()
		debouncer := newDebouncer(func(context.Context) (bool, error) {
			at = append(at, int(time.Since(began).Milliseconds()))
			return apply(len(at))
		})
		ctx, cancel := context.WithTimeout(context.Background(), length)
		defer cancel()
		go func() {
			for _, ms := range triggers {
				time.Sleep(time.Until(began.Add(time.Duration(ms) * time.Millisecond)))
				debouncer.Trigger()
			}
		}()
		debouncer.Run(ctx)
	})
	return at
}

func every(ms, until int) []int {
	var out []int
	for at := 0; at < until; at += ms {
		out = append(out, at)
	}
	return out
}

func TestDebouncer(t *testing.T) {
	always := func(int) (bool, error) { return true, nil }
	never := func(int) (bool, error) { return false, nil }
	fails := func(int) (bool, error) { return false, errors.New("no") }
	for name, tt := range map[string]struct {
		triggers []int
		apply    func(int) (bool, error)
		want     []int
	}{
		"none":                          {nil, always, nil},
		"one":                           {[]int{0}, always, []int{100}},
		"two close together":            {[]int{0, 80}, always, []int{180}},
		"two, each with a reload":       {[]int{0, 1000}, always, []int{100, 3100}},
		"two without a reload":          {[]int{0, 1000}, never, []int{100, 1100}},
		"no quiet for two seconds":      {every(70, 2000), never, []int{1000, 2050}},
		"failure is tried again":        {[]int{0}, fails, []int{100, 4100, 12100, 22100, 32100, 42100, 52100}},
		"a trigger comes before that":   {[]int{0, 3500}, fails, []int{100, 3600, 11600, 21600, 31600, 41600, 51600}},
		"it works the second time":      {[]int{0}, func(n int) (bool, error) { return n == 2, map[int]error{1: errors.New("no")}[n] }, []int{100, 4100}},
		"never more often than reloads": {every(30, 10_000), always, []int{1000, 4000, 7000, 10000}},
	} {
		testkit.Equal(testkit.In(t, name), tt.want, runDebouncer(t, tt.triggers, time.Minute, tt.apply))
	}
}

// Hard case 20: 250 nodes register within a minute, each of which is reported four times.
func TestHardCase20Storm(t *testing.T) {
	triggers := every(60, 60_000)
	if len(triggers) != 1000 {
		t.Fatal(len(triggers))
	}
	at := runDebouncer(t, triggers, 2*time.Minute, func(int) (bool, error) { return true, nil })
	if len(at) > 21 {
		t.Errorf("%d reloads in a minute: %v", len(at), at)
	}
	if last := at[len(at)-1]; last < triggers[999] || last > triggers[999]+4000 {
		t.Errorf("the last trigger came at %d ms, the last reload at %d ms", triggers[999], last)
	}
}

// The loop is stuck while an apply does not return, and without any trigger if the loop does
// not run.
func TestStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		l := newDebouncer(func(context.Context) (bool, error) {
			<-hang
			return false, nil
		})
		expect := func(after time.Duration, stuck bool) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if err := l.Stuck(); (err != nil) != stuck {
				t.Errorf("stuck: %v, want %v", err, stuck)
			}
		}
		expect(time.Hour, false) // it has not begun
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			l.Run(ctx)
		}()
		expect(time.Second, false)
		l.Trigger()
		expect(stuckAfter/2, false) // it may take so long
		expect(stuckAfter/2, true)
		hang <- struct{}{}
		expect(0, false)
		expect(stuckAfter+time.Second, true) // no trigger
		close(hang)
		l.Trigger()
		expect(time.Second, false)
		stop()
		<-ended
	})
}

// A change that has settled is applied as soon as the last reload is long enough ago; an
// immediate one does not wait.
func TestSettledAndNow(t *testing.T) {
	var at []int
	synctest.Test(t, func(*testing.T) {
		began := time.Now()
		debouncer := newDebouncer(func(context.Context) (bool, error) {
			at = append(at, int(time.Since(began).Milliseconds()))
			return true, nil
		})
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		go func() {
			for _, step := range []struct {
				wait time.Duration
				tell func()
			}{
				{0, func() { debouncer.Changed(true) }},
				{500 * time.Millisecond, func() { debouncer.Changed(true) }}, // 3 s after the last one
				{1500 * time.Millisecond, debouncer.Now},                     // and what had settled with it
				{6 * time.Second, func() { debouncer.Changed(false) }},       // after a while of quiet
				{50 * time.Millisecond, func() { debouncer.Changed(true) }},  // and what had not with it
				{6 * time.Second, debouncer.Trigger},                         // after a while of quiet
				{time.Second, debouncer.Now},
			} {
				time.Sleep(step.wait)
				step.tell()
			}
		}()
		debouncer.Run(ctx)
	})
	testkit.Equal(t, []int{0, 2000, 8050, 14150, 15050}, at)
}
