package ignition

import (
	"strings"
	"testing"

	"github.com/coreos/ignition/v2/config/v3_2"
	"github.com/coreos/ignition/v2/config/v3_4"
	"github.com/coreos/ignition/v2/config/v3_5"
	"github.com/coreos/vcontext/report"

	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/internal/testkit"
)

func TestParseTarget(t *testing.T) {
	for _, tt := range []struct {
		variant, version string
		want             Target
		wrong            string
	}{
		{"", "", Target{OpenShift, "4.12"}, ""},
		{"openshift", "", Target{OpenShift, "4.12"}, ""},
		{"openshift", "4.12", Target{OpenShift, "4.12"}, ""},
		{"openshift", "4.20", Target{OpenShift, "4.20"}, ""},
		{"openshift", "4.16.12", Target{OpenShift, "4.16"}, ""},
		{"openshift", "4.22.0-rc.1", Target{OpenShift, "4.22"}, ""},
		{"fcos", "", Target{FCOS, "1.7"}, ""},
		{"fcos", "4.16", Target{FCOS, "1.7"}, ""},
		{"flatcar", "", Target{Flatcar, "1.1"}, ""},
		{"openshift", "4.2", Target{}, "4.12, 4.13, 4.14, 4.15, 4.16, 4.17, 4.18, 4.19, 4.20, 4.21, 4.22, 4.23, 5.0, 5.1, 5.2"},
		{"openshift", "4.24", Target{}, "use one of 4.12"},
		{"openshift", "5.3", Target{}, "use one of 4.12"},
		{"openshift", "5.2.1", Target{OpenShift, "5.2"}, ""},
		{"openshift", "latest", Target{}, `"latest"`},
		{"rhcos", "", Target{}, "use openshift, fcos or flatcar"},
	} {
		got, err := ParseTarget(tt.variant, tt.version)
		if got != tt.want || (err == nil) != (tt.wrong == "") || err != nil && !strings.Contains(err.Error(), tt.wrong) {
			t.Errorf("%s %s: got %v, %v", tt.variant, tt.version, got, err)
		}
	}
	want := strings.Split("4.12 4.13 4.14 4.15 4.16 4.17 4.18 4.19 4.20 4.21 4.22 4.23 5.0 5.1 5.2", " ")
	testkit.Equal(t, want, SupportedOpenShift())
}

// TestHardCase55IgnitionCeiling: an operator aborts an installation over a MachineConfig of a
// newer Ignition version than it parses. It parses with these packages of Ignition, which
// decide here for each release, and without a release.
func TestHardCase55IgnitionCeiling(t *testing.T) {
	parse := map[string]func([]byte) (report.Report, error){
		"3.2.0": func(raw []byte) (report.Report, error) { _, r, err := v3_2.ParseCompatibleVersion(raw); return r, err },
		"3.4.0": func(raw []byte) (report.Report, error) { _, r, err := v3_4.ParseCompatibleVersion(raw); return r, err },
		"3.5.0": func(raw []byte) (report.Report, error) { _, r, err := v3_5.ParseCompatibleVersion(raw); return r, err },
	}
	for _, release := range assets.Releases {
		ceiling := parse[release.Ignition]
		if ceiling == nil {
			t.Fatalf("%s: no parser of Ignition %s", release.Version, release.Ignition)
		}
		for _, version := range []string{release.Version, ""} {
			target, err := ParseTarget(OpenShift, version)
			testkit.Must(t, err)
			raw, err := NewEncoder(target).Ignition(sample())
			testkit.Must(t, err)
			if r, err := ceiling(raw); err != nil || r.IsFatal() {
				t.Errorf("%s for release %q: Ignition %s refused: %v %s", release.Version, version, NewEncoder(target).IgnitionVersion(), err, r)
			}
		}
		newer := `{"ignition": {"version": "3.6.0"}}`
		_, err := ceiling([]byte(newer))
		testkit.Fails(testkit.In(t, release.Version), err, "")
	}
}
