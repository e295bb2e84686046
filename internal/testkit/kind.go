package testkit

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A test has one of three kinds, by what a failure means. It declares its kind by one call
// at its beginning, before anything that can fail; its subtests are of that kind too.
//
//   - Deterministic: red means wrong, on any machine, however busy. It waits for conditions,
//     or has its clock in hand (testing/synctest); daemons are parsers (haproxy -c,
//     keepalived -t, nft -c, Corefiles on trial). This is the kind of a test that declares
//     none: it is declared by one that needs root or a program (Privileged), or that takes long
//     enough for it to matter that it runs again where live tests do (Deterministic).
//   - Live: red may mean late. Traffic passes daemons or namespaces, nodes elect, the kernel
//     or a daemon has to do something in time.
//   - Measured: live, and its bounds are a promise in milliseconds or bytes.
//
// Live and measured tests that fail are run again, alone, by internal/tools/retest;
// deterministic ones never are. Long is not a kind: it marks a test, of any kind, that takes minutes.
// A Variant repeats a live test for another address family, direction or profile. One that takes
// hours is of the target of the Makefile that runs it alone (Only).
//
// No test is skipped otherwise: one that this machine cannot run calls CannotRun, and one
// that needs what can be installed fails.

// variable selects the tests that run, as the Makefile's targets of these names:
//
//	unit      deterministic tests that need neither root nor a program
//	test      all deterministic tests but the long ones, and the smoke test (as if it were not set)
//	live      live and long tests, and tests that declare no kind
//	variants  the same, and the variants of live tests
//	measured  measured tests, and tests that declare no kind
//	all       every test but those of Only
//	e2e-life  every test, and those of Only(t, "e2e-life"); likewise for other targets
const variable = "VIPGEN_TESTS"

// targets are the values of the variable that add the tests of a target of the Makefile.
var targets = []string{"e2e-life", "lab-upgrade", "release-check"}

// inCI is set by .ci/run, whose machine runs every test.
const inCI = "VIPGEN_CI"

// kind is declared by a test; a later one includes those before it.
type kind int

const (
	deterministic kind = iota
	long
	live
	variant
	measured
	smoke
)

// attributes maps kinds to the attribute "kind", which internal/tools/retest reads.
var attributes = map[kind]string{live: "live", variant: "live", measured: "measured", smoke: "live"}

// Deterministic declares a deterministic test that need not run again with the live tests.
func Deterministic(t testing.TB) { t.Helper(); declare(t, deterministic) }

// Privileged declares a deterministic test that needs root, or a program of a Debian package or
// CoreDNS as a parser: `make unit` skips it.
func Privileged(t testing.TB) { t.Helper(); needsRoot(t); declare(t, deterministic) }

// Long declares that a test takes minutes, or a tool that takes minutes to build: `make test`
// skips it. It is deterministic if it declares nothing else.
func Long(t testing.TB) { t.Helper(); declare(t, long) }

// Live declares a live test: `make test-live`, `make test-elections` and `make test-lab` run it.
func Live(t testing.TB) { t.Helper(); declare(t, live) }

// Variant declares a live test, or a subtest of one, that `make test-variants` adds.
func Variant(t testing.TB) { t.Helper(); declare(t, variant) }

// Measured declares a measured test: `make test-measured` runs it.
func Measured(t testing.TB) { t.Helper(); declare(t, measured) }

// Smoke declares the one live test that `make test` runs.
func Smoke(t testing.TB) { t.Helper(); declare(t, smoke) }

// Only declares that only a target of the Makefile, which is one of targets, runs a test. It
// declares its kind as well.
func Only(t testing.TB, target string) {
	t.Helper()
	if !slices.Contains(targets, target) {
		t.Fatalf("%s is none of %v", target, targets)
	}
	if !Asked(target) {
		mode(t)
		t.Skip("`make " + target + "` runs it")
	}
}

// Asked reports whether the tests of a target run.
func Asked(target string) bool { return os.Getenv(variable) == target }

// CannotRun ends a test that needs what this machine lacks and what cannot be installed, such as
// a core. It fails in continuous integration; elsewhere internal/tools/retest lists it.
func CannotRun(t testing.TB, why string) {
	t.Helper()
	t.Attr("cannot-run", why)
	if os.Getenv(inCI) != "" {
		t.Fatal("this machine cannot run it: " + why)
	}
	t.Skip("this machine cannot run it: " + why)
}

// Alone declares a subtest that needs none of those before it: when it fails,
// internal/tools/retest runs it again, and not the whole test.
func Alone(t testing.TB) { t.Helper(); t.Attr("alone", "yes") }

var declared sync.Map

func declare(t testing.TB, k kind) {
	t.Helper()
	if k != deterministic {
		needsRoot(t)
	}
	if covered(t.Name(), k) {
		return
	}
	if late(t.Name(), k) {
		t.Error("test declared deterministic and then live: it would run neither by `make test` nor by `make test-live`")
	}
	declared.Store(t.Name(), k)
	if value := attributes[k]; value != "" {
		t.Attr("kind", value)
	}
	if k == long || k == live || k == variant {
		listed(t)
	}
	if reason := leftOut(mode(t), k); reason != "" {
		t.Skip(reason)
	}
}

// withLive lists the packages that `make test-live` and `make test-elections` link and run: the
// others have no live tests.
//
//go:embed live.txt
var withLive string

// listed fails a live test that these would skip, also where it does not run itself. All
// packages of other modules run, and benchmarks are run by name.
func listed(t testing.TB) {
	t.Helper()
	if _, bench := t.(*testing.B); bench {
		return
	}
	root := Root(t)
	dir, err := os.Getwd()
	Must(t, err)
	for d := dir; d != root; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "go.mod")); err == nil {
			return
		}
	}
	pkg, err := filepath.Rel(root, dir)
	Must(t, err)
	if !strings.Contains("\n"+withLive, "\n"+pkg+"\n") {
		t.Errorf("add %s to internal/testkit/live.txt, so that `make test-live` runs its tests", pkg)
	}
}

// late reports whether a test that declared itself deterministic, and is skipped with the live
// ones, declares more.
func late(name string, k kind) bool {
	have, ok := declared.Load(name)
	return ok && have.(kind) == deterministic && k > deterministic
}

// covered reports whether a test, or a parent, has declared a kind.
func covered(name string, k kind) bool {
	for ; name != ""; name = name[:max(strings.LastIndexByte(name, '/'), 0)] {
		if have, ok := declared.Load(name); ok && have.(kind) >= k {
			return true
		}
	}
	return false
}

// leftOut returns why tests of a kind are skipped, or "".
func leftOut(mode string, k kind) string {
	liveMode := mode == "live" || mode == "variants"
	switch {
	case k == variant && (mode == "test" || mode == "live"):
		return "it is a variant: `make test-variants` runs it"
	case k == measured && (mode == "test" || liveMode):
		return "it is measured: `make test-measured` runs it"
	case k != measured && mode == "measured":
		return "it is not measured"
	case mode == "test" && (k == live || k == long):
		return "it is live or takes minutes: `make test-live test-elections test-lab` runs it"
	case liveMode && (k == deterministic || k == smoke):
		return "`make test` runs it"
	}
	return ""
}

// needsRoot skips a test where tests must need neither root nor programs.
func needsRoot(t testing.TB) {
	t.Helper()
	if mode(t) == "unit" {
		t.Skip("it needs root or programs of `make setup tools`: `make test-all` runs it")
	}
	if os.Geteuid() != 0 {
		t.Fatal("it needs root: run the tests as root, or those that do not need it by `make unit`")
	}
}

func mode(t testing.TB) string {
	t.Helper()
	m, err := modeOf(os.Getenv(variable))
	Must(t, err)
	return m
}

func modeOf(value string) (string, error) {
	switch value {
	case "":
		return "test", nil
	case "unit", "test", "live", "variants", "measured", "all":
		return value, nil
	}
	if slices.Contains(targets, value) {
		return "all", nil
	}
	return "", fmt.Errorf("%s is %q; it can be unit, test, live, variants, measured, all, %s", variable, value, strings.Join(targets, ", "))
}
