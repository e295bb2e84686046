package testkit

import (
	"fmt"
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
	makefile := string(ReadFile(t, filepath.Join(Root(t), "Makefile")))
	for _, target := range targets {
		if got, err := modeOf(target); got != "all" || err != nil || !strings.Contains(makefile, "\tVIPGEN_TESTS="+target+" ") {
			t.Errorf("%s: %q, %v, or the Makefile does not set it", target, got, err)
		}
	}
}

// `make test-live` omits no live test because its package is not listed.
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

// recorder is a test that records its messages.
type recorder struct {
	testing.TB
	errors []string
}

func (*recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}
