package nodeip

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

const (
	none    = "link eth0"
	other4  = "link eth0\naddr 203.0.113.1/24"
	only4   = "link eth0\naddr 192.0.2.10/24"
	only6   = "link eth0\naddr 2001:db8::10/64"
	checked = "link eth0\naddr 192.0.2.10/24\naddr 2001:db8::10/64 tentative"
	dual    = "link eth0\naddr 192.0.2.10/24\naddr 2001:db8::10/64"
)

// TestWait uses a fake clock: the network changes to the next one of the list every ten
// seconds.
func TestWait(t *testing.T) {
	const both = "192.0.2.0/24 2001:db8::/64"
	for _, tt := range []struct {
		name     string
		networks []string
		machines string
		want     string        // chosen
		within   time.Duration // upper bound of the wait
		after    time.Duration // lower bound of the wait
		says     []string      // logged lines, in order
	}{
		{"at once", []string{only4}, "192.0.2.0/24", "192.0.2.10/24 eth0", 0, 0, nil},
		{"later", []string{none, none, only4}, "192.0.2.0/24", "192.0.2.10/24 eth0", 60 * time.Second, 20 * time.Second,
			[]string{"no interface has an IPv4 address"}},
		{"second family within the grace", []string{none, only4, checked, checked, dual}, both, "192.0.2.10/24 eth0, 2001:db8::10/64 eth0", 70 * time.Second, 30 * time.Second,
			[]string{"IPv4: no interface", "no interface has an IPv6", "kernel still checks"}},
		{"second family not within the grace", []string{only4}, both, "192.0.2.10/24 eth0, no IPv6", 40 * time.Second, 40 * time.Second,
			[]string{"no interface has an IPv6", "continuing with one"}},
		{"primary family lost meanwhile", []string{only4, none, none, none, none, none, none, dual}, both, "192.0.2.10/24 eth0, 2001:db8::10/64 eth0", 120 * time.Second, 70 * time.Second,
			[]string{"no interface has an IPv6", "IPv4: no interface"}},
		{"primary family never", []string{only6}, both, "", 5 * time.Minute, 5 * time.Minute,
			[]string{"no interface has an IPv4"}},
		{"no address that fits, ever", []string{none, other4}, "192.0.2.0/24", "", 5 * time.Minute, 5 * time.Minute,
			[]string{"no interface has an IPv4"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var logged bytes.Buffer
				begin := time.Now()
				w := Waiter{
					Spec: cluster("", tt.machines), Log: slog.New(slog.NewTextHandler(&logged, nil)),
					Read: func() (Snapshot, error) {
						i := min(int(time.Since(begin)/(10*time.Second)), len(tt.networks)-1)
						return network(t, tt.networks[i]), nil
					},
					Grace: 40 * time.Second,
				}
				ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
				defer stop()
				c, err := w.Wait(ctx)
				if (err != nil) != (tt.want == "") || picked(c) != tt.want {
					t.Errorf("chose %s with error %v, want %q", picked(c), err, tt.want)
				}
				if err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("error %v, want that of the context", err)
				}
				if took := time.Since(begin); took < tt.after || took > tt.within {
					t.Errorf("took %v, want %v to %v", took, tt.after, tt.within)
				}
				lines := strings.Split(strings.TrimSpace(logged.String()), "\n")
				if logged.Len() == 0 {
					lines = nil
				}
				if len(lines) != len(tt.says) {
					t.Fatalf("logged %q, want %d lines", lines, len(tt.says))
				}
				for i, want := range tt.says {
					testkit.Contains(testkit.In(t, i), lines[i], want)
				}
			})
		})
	}
}

func TestWaitForThePrimaryFamilyAlone(t *testing.T) {
	var logged bytes.Buffer
	w := Waiter{
		Spec: cluster("", "192.0.2.0/24 2001:db8::/64"), Log: slog.New(slog.NewTextHandler(&logged, nil)), Primary: true,
		Read: func() (Snapshot, error) { return network(t, only4), nil },
	}
	c, err := w.Wait(t.Context())
	if err != nil || picked(c) != "192.0.2.10/24 eth0, no IPv6" || logged.Len() > 0 {
		t.Errorf("chose %s, error %v, logged %q", picked(c), err, logged.String())
	}
}

func TestWaitReadsAgainOnAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		changes := make(chan struct{}, 1)
		reads, begin := 0, time.Now()
		w := Waiter{
			Spec: cluster("", "192.0.2.0/24"), Log: slog.New(slog.DiscardHandler), Changes: changes,
			Read: func() (Snapshot, error) {
				if reads++; reads == 1 {
					return Snapshot{}, errors.New("the kernel is busy")
				}
				if time.Since(begin) < 20*time.Second {
					return network(t, none), nil
				}
				return network(t, only4), nil
			},
		}
		time.AfterFunc(20*time.Second, func() { changes <- struct{}{} })
		if _, err := w.Wait(t.Context()); err != nil || time.Since(begin) != 20*time.Second {
			t.Errorf("error %v after %v, want none after 20s", err, time.Since(begin))
		}
	})
}

func TestDebounce(t *testing.T) {
	for _, tt := range []struct {
		name    string
		changes []time.Duration // since the start
		want    []time.Duration // reports
	}{
		{"one", []time.Duration{0}, []time.Duration{quiet}},
		{"burst", []time.Duration{0, 50 * time.Millisecond, 100 * time.Millisecond}, []time.Duration{300 * time.Millisecond}},
		{"two", []time.Duration{0, time.Second}, []time.Duration{quiet, time.Second + quiet}},
		{"without an end", every(150*time.Millisecond, 2100*time.Millisecond), []time.Duration{longest, 2300 * time.Millisecond}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				changes, reports := make(chan struct{}, 1), make(chan struct{}, 1)
				go func() {
					defer close(reports)
					debounce(changes, reports)
				}()
				begin := time.Now()
				go func() {
					for _, at := range tt.changes {
						time.Sleep(time.Until(begin.Add(at)))
						report(changes)
					}
					time.Sleep(time.Minute)
					close(changes)
				}()
				var got []time.Duration
				for range reports {
					got = append(got, time.Since(begin))
				}
				testkit.Equal(t, tt.want, got)
			})
		})
	}
}

func every(step, end time.Duration) (out []time.Duration) {
	for at := time.Duration(0); at <= end; at += step {
		out = append(out, at)
	}
	return out
}
