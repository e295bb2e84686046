package testkit

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestModes(t *testing.T) {
	kinds := map[string]kind{"deterministic": deterministic, "long": long, "live": live, "variant": variant, "measured": measured, "smoke": smoke}
	for mode, runs := range map[string]map[string]bool{
		"test":     {"deterministic": true, "smoke": true},
		"live":     {"long": true, "live": true},
		"variants": {"long": true, "live": true, "variant": true},
		"measured": {"measured": true},
		"all":      {"deterministic": true, "smoke": true, "long": true, "live": true, "variant": true, "measured": true},
	} {
		for name, k := range kinds {
			if got := leftOut(mode, k) == ""; got != runs[name] {
				t.Errorf("%s tests with %s: run %t, want %t", name, mode, got, runs[name])
			}
		}
		if got, err := modeOf(mode); got != mode || err != nil {
			t.Errorf("%s: %q, %v", mode, got, err)
		}
	}
	if got, err := modeOf(""); got != "test" || err != nil {
		t.Errorf("unset: %q, %v", got, err)
	}
	if _, err := modeOf("short"); err == nil {
		t.Error("short is a mode")
	}
}

// What a test declares holds for its subtests, which may declare more.
func TestDeclaredOnce(t *testing.T) {
	declared.Store("TestX/a", live)
	t.Cleanup(func() { declared.Delete("TestX/a") })
	for name, want := range map[string]bool{"TestX/a": true, "TestX/a/b": true, "TestX": false, "TestX/ab": false} {
		if got := covered(name, live); got != want {
			t.Errorf("%s is covered: %t, want %t", name, got, want)
		}
	}
	if late("TestX/a", measured) || late("TestX", live) {
		t.Error("a live test may be measured, and one that declared nothing live")
	}
	declared.Store("TestY", deterministic)
	t.Cleanup(func() { declared.Delete("TestY") })
	if !late("TestY", live) || late("TestY", deterministic) {
		t.Error("a deterministic test is live after all, and that is not noticed")
	}
	if covered("TestX/a", measured) || !covered("TestX/a/b", deterministic) {
		t.Error("live covers what is measured, or not what is deterministic")
	}
}

// No live test is left out by `make test-live` because its package is not listed.
func TestListed(t *testing.T) {
	root := Root(t)
	for dir, want := range map[string]string{"agent/keepalived": "", "internal/image": "", "api/v1alpha1": "add api/v1alpha1 to internal/testkit/live.txt"} {
		t.Chdir(filepath.Join(root, dir))
		r := &recorder{TB: t}
		listed(r)
		if got := strings.Join(r.errors, ""); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", dir, got, want)
		}
	}
	for pkg := range strings.Lines(withLive) {
		if tests, err := filepath.Glob(filepath.Join(root, strings.TrimSpace(pkg), "*_test.go")); err != nil || len(tests) == 0 {
			t.Errorf("live.txt: %s has no tests", pkg)
		}
	}
}
