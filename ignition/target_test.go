package ignition

import (
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

func TestParseTarget(t *testing.T) {
	tests := []struct {
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
	}
	for _, tt := range tests {
		got, err := ParseTarget(tt.variant, tt.version)
		if got != tt.want || (err == nil) != (tt.wrong == "") || err != nil && !strings.Contains(err.Error(), tt.wrong) {
			t.Errorf("%s %s: got %v, %v", tt.variant, tt.version, got, err)
		}
	}
	want := strings.Split("4.12 4.13 4.14 4.15 4.16 4.17 4.18 4.19 4.20 4.21 4.22 4.23 5.0 5.1 5.2", " ")
	testkit.Equal(t, want, SupportedOpenShift())
}
