package testkit

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestModes(t *testing.T) {
	all := []kind{deterministic, long, live, variant, measured, smoke}
	for text, runs := range map[string][]kind{
		"": {deterministic, smoke}, "live": {long, live}, "variants": {long, live, variant}, "measured": {measured}, "all": all, "e2e-life": all,
	} {
		mode, err := modeOf(text)
		Must(t, err)
		for _, k := range all {
			Equal(In(t, mode, k), slices.Contains(runs, k), leftOut(mode, k) == "")
		}
	}
	if _, err := modeOf("short"); err == nil {
		t.Error("short is a mode")
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

// `make unit` omits no test that would run there.
func TestNotUnit(t *testing.T) {
	root := Root(t)
	for pkg := range strings.Lines(string(ReadFile(t, "notunit.txt"))) {
		dir := filepath.Join(root, strings.TrimSpace(pkg))
		if names := unitTests(t, dir); len(names) > 0 {
			t.Errorf("notunit.txt: %s has other tests than live ones: %v", dir, names)
		}
	}
	if names := unitTests(t, "."); !slices.Contains(names, "TestNotUnit") {
		t.Errorf("tests of this package that are not live: %v", names)
	}
}

// unitTests returns the tests in a folder that do not begin as live ones.
func unitTests(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no tests, %v", dir, err)
	}
	for _, file := range files {
		source := string(ReadFile(t, file))
		for _, test := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)\(.*\n(.*)`).FindAllStringSubmatch(source, -1) {
			if test[2] != "\ttestkit.Live(t)" {
				names = append(names, test[1])
			}
		}
	}
	return names
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
