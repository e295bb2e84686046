// Package testkit is shared by the tests of all packages: the selection of tests, waiting for
// conditions, and the programs that they run. Real daemons are in internal/testbed/daemon.
package testkit

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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

// addresses compares values that cmp cannot look into.
var addresses = cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}, netip.Prefix{})

// Check fails the test if there is an error, and lets it continue.
func Check(t testing.TB, err error) {
	if err != nil {
		t.Helper()
		t.Error(err)
	}
}

// Fails fails the test if there is no error, or one without the words.
func Fails(t testing.TB, err error, words string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), words) {
		t.Errorf("want an error with %q, got: %v", words, err)
	}
}

// Is fails the test unless errors.Is finds the target in an error.
func Is(t testing.TB, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("want the error %v, got: %v", target, err)
	}
}

// Equal fails the test if a value is not as expected, and shows the difference. Without
// options, addresses are compared as values.
func Equal[T any](t testing.TB, want, got T, options ...cmp.Option) {
	t.Helper()
	if reflect.DeepEqual(want, got) {
		return // cmp compares files byte by byte
	}
	if len(options) == 0 {
		options = []cmp.Option{addresses}
	}
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}

// Contains fails the test for each part that is not in a text, and shows the text.
func Contains(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
}

// Lacks fails the test for each part that is in a text.
func Lacks(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("%q in\n%s", part, text)
		}
	}
}

// Empty fails the test if a list or a map has elements.
func Empty(t testing.TB, list any) {
	t.Helper()
	if reflect.ValueOf(list).Len() > 0 {
		t.Errorf("not empty: %+v", list)
	}
}

// In returns a test whose reports begin with the name of a case, such as a row of a table.
func In(t testing.TB, name ...any) testing.TB {
	return &inCase{t, strings.TrimSuffix(fmt.Sprintln(name...), "\n") + ": "}
}

type inCase struct {
	testing.TB
	name string
}

func (c *inCase) Errorf(format string, args ...any) {
	c.TB.Helper()
	c.TB.Error(c.name + fmt.Sprintf(format, args...))
}

func (c *inCase) Error(args ...any) {
	c.TB.Helper()
	c.TB.Error(c.name + fmt.Sprint(args...))
}

func (c *inCase) Fatal(args ...any) {
	c.TB.Helper()
	c.TB.Fatal(c.name + fmt.Sprint(args...))
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
