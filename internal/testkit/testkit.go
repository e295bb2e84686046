// Package testkit is what tests of all packages share: which of them run, waiting
// for conditions, and the programs that they run. What runs real daemons is in its
// folder daemon.
package testkit

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Patience is how long anything may take that takes seconds on an idle machine.
const Patience = 2 * time.Minute

// Must ends the test if there is an error.
func Must(t testing.TB, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}

// Equal fails the test if a value is not as expected, and shows in what it differs.
func Equal(t testing.TB, want, got any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}

// Cleanup calls f when the test ends, which fails if f does.
func Cleanup(t testing.TB, f func() error) {
	t.Helper()
	t.Cleanup(func() {
		if err := f(); err != nil {
			t.Error(err)
		}
	})
}

// Await returns when a condition holds, and fails the test if it does not within
// Patience. It looks often at first, and at most every 20 ms: an instant is right to a
// millisecond or 5 %. what says what is waited for, and state, if it is given, what is
// there instead.
func Await(t testing.TB, what string, condition func() bool, state ...func() string) {
	t.Helper()
	AwaitWithin(t, Patience, what, condition, state...)
}

// AwaitWithin is Await with another bound than Patience.
func AwaitWithin(t testing.TB, bound time.Duration, what string, condition func() bool, state ...func() string) {
	t.Helper()
	for began := time.Now(); !condition(); time.Sleep(min(max(time.Since(began)/20, time.Millisecond), 20*time.Millisecond)) {
		if time.Since(began) > bound {
			for _, s := range state {
				what += "\n" + s()
			}
			t.Fatalf("waited %v in vain for %s", bound, what)
		}
	}
}
