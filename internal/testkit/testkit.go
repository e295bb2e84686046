// Package testkit is shared by the tests of all packages: the selection of tests, waiting for
// conditions, and the programs that they run. Real daemons are in internal/testbed/daemon.
package testkit

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Patience bounds everything that takes seconds on an idle machine.
const Patience = 2 * time.Minute

// Must ends the test if there is an error.
func Must(t testing.TB, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}

// Equal fails the test if a value is not as expected, and shows the difference.
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

// Await waits until a condition holds, and fails the test if it does not within Patience. It
// polls often at first, and at most every 20 ms: the result is accurate to a millisecond or 5
// %. what describes the condition, and state, if given, the current state.
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
