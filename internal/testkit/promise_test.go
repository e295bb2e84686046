package testkit

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// recorder is a test that records its messages.
type recorder struct {
	testing.TB
	errors, logs []string
}

func (*recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func (r *recorder) Logf(format string, args ...any) {
	r.logs = append(r.logs, fmt.Sprintf(format, args...))
}

func TestPromise(t *testing.T) {
	const ms = time.Millisecond
	tests := []struct {
		name         string
		got, late    time.Duration
		errors, logs int
	}{
		{"kept on a quiet machine", 100 * ms, 2 * ms, 0, 0},
		{"kept on a busy machine", 100 * ms, 400 * ms, 0, 0},
		{"broken on a quiet machine", 101 * ms, 25 * ms, 1, 0},
		{"not kept on a busy machine", 101 * ms, 26 * ms, 0, 1},
		{"beyond what load explains", 1001 * ms, 400 * ms, 1, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var r recorder
			Promise(&r, "failover", tt.got, 100*ms, time.Second, tt.late)
			if len(r.errors) != tt.errors || len(r.logs) != tt.logs {
				t.Errorf("errors %q, logs %q", r.errors, r.logs)
			}
			if all := strings.Join(append(r.errors, r.logs...), ""); all != "" && !strings.Contains(all, "failover: "+tt.got.String()) {
				t.Errorf("logged %q", all)
			}
		})
	}
}

func TestExplained(t *testing.T) {
	const ms = time.Millisecond
	for late, want := range map[time.Duration]bool{0: false, 120 * ms: false, 121 * ms: true} {
		r := &recorder{TB: t}
		if got := Explained(r, "the VIP moved", late, 120*ms); got != want || len(r.errors) != map[bool]int{false: 1}[want] || len(r.logs) != map[bool]int{true: 1}[want] {
			t.Errorf("late by %v: %t, errors %q, logs %q", late, got, r.errors, r.logs)
		}
	}
}
