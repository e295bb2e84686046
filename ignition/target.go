package ignition

import (
	"fmt"
	"strings"

	"github.com/coreos/butane/config/fcos/v1_7"
	flatcar "github.com/coreos/butane/config/flatcar/v1_1"
	"github.com/coreos/butane/config/openshift/v4_12"
	"github.com/coreos/butane/config/openshift/v4_13"
	"github.com/coreos/butane/config/openshift/v4_14"
	"github.com/coreos/butane/config/openshift/v4_15"
	"github.com/coreos/butane/config/openshift/v4_16"
	"github.com/coreos/butane/config/openshift/v4_17"
	"github.com/coreos/butane/config/openshift/v4_18"
	"github.com/coreos/butane/config/openshift/v4_19"
	"github.com/coreos/butane/config/openshift/v4_20"
	"github.com/coreos/butane/config/openshift/v4_21"
)

// Variants of operating systems in Butane's spelling.
const (
	OpenShift = "openshift"
	FCOS      = "fcos"
	Flatcar   = "flatcar"
)

// Target is an operating system with its version.
type Target struct {
	// Variant is openshift, fcos or flatcar.
	Variant string
	// Version is the OpenShift version ("4.16"), or for the others that of the Butane
	// specification without its last number ("1.7").
	Version string
}

// String returns the variant and the version, such as "openshift 4.16".
func (t Target) String() string { return t.Variant + " " + t.Version }

// supported lists the targets, each with the Ignition version that its systems read, the
// version of the Butane specification and the Butane package that encodes it. The last version
// of a variant comes last. Releases have an earlier specification where Butane has no stable
// one for them, or where that one writes a newer Ignition than their machine-config operator
// reads (assets.Release.Ignition, hard case 55).
var supported = []struct {
	Target
	ignition  string
	butane    string
	translate translation
}{
	{Target{OpenShift, "4.12"}, "3.2.0", "4.12.0", translateWith(v4_12.Config.ToIgn3_2)},
	{Target{OpenShift, "4.13"}, "3.2.0", "4.13.0", translateWith(v4_13.Config.ToIgn3_2)},
	{Target{OpenShift, "4.14"}, "3.4.0", "4.14.0", translateWith(v4_14.Config.ToIgn3_4)},
	{Target{OpenShift, "4.15"}, "3.4.0", "4.15.0", translateWith(v4_15.Config.ToIgn3_4)},
	{Target{OpenShift, "4.16"}, "3.4.0", "4.16.0", translateWith(v4_16.Config.ToIgn3_4)},
	{Target{OpenShift, "4.17"}, "3.4.0", "4.17.0", translateWith(v4_17.Config.ToIgn3_4)},
	{Target{OpenShift, "4.18"}, "3.4.0", "4.18.0", translateWith(v4_18.Config.ToIgn3_4)},
	{Target{OpenShift, "4.19"}, "3.5.0", "4.19.0", translateWith(v4_19.Config.ToIgn3_5)},
	{Target{OpenShift, "4.20"}, "3.5.0", "4.20.0", translateWith(v4_20.Config.ToIgn3_5)},
	{Target{OpenShift, "4.21"}, "3.5.0", "4.21.0", translateWith(v4_21.Config.ToIgn3_5)},
	{Target{OpenShift, "4.22"}, "3.5.0", "4.21.0", translateWith(v4_21.Config.ToIgn3_5)},
	{Target{OpenShift, "4.23"}, "3.5.0", "4.21.0", translateWith(v4_21.Config.ToIgn3_5)},
	{Target{OpenShift, "5.0"}, "3.5.0", "4.21.0", translateWith(v4_21.Config.ToIgn3_5)},
	{Target{OpenShift, "5.1"}, "3.5.0", "4.21.0", translateWith(v4_21.Config.ToIgn3_5)},
	{Target{OpenShift, "5.2"}, "3.5.0", "4.21.0", translateWith(v4_21.Config.ToIgn3_5)},
	{Target{FCOS, "1.7"}, "3.6.0", "1.7.0", translateWith(v1_7.Config.ToIgn3_6)},
	{Target{Flatcar, "1.1"}, "3.4.0", "1.1.0", translateWith(flatcar.Config.ToIgn3_4)},
}

// ParseTarget returns the target of a variant; "" is openshift.
//
// openshiftVersion applies to openshift alone and is "4.16" or a full release such as
// "4.16.12". "" is the oldest supported version, whose Ignition 3.2.0 every supported release
// reads. The others get Butane's latest stable version for them. An unknown variant or version
// is an error that lists the known ones.
func ParseTarget(variant, openshiftVersion string) (Target, error) {
	switch variant {
	case "", OpenShift:
		return openShiftTarget(openshiftVersion)
	case FCOS, Flatcar:
		return latest(variant), nil
	}
	return Target{}, fmt.Errorf("unknown variant %q: use %s, %s or %s", variant, OpenShift, FCOS, Flatcar)
}

func openShiftTarget(version string) (Target, error) {
	known := SupportedOpenShift()
	if version == "" {
		return Target{OpenShift, known[0]}, nil
	}
	for _, v := range known {
		if version == v || strings.HasPrefix(version, v+".") {
			return Target{OpenShift, v}, nil
		}
	}
	return Target{}, fmt.Errorf("unknown OpenShift version %q: use one of %s", version, strings.Join(known, ", "))
}

func latest(variant string) (t Target) {
	for _, s := range supported {
		if s.Variant == variant {
			t = s.Target
		}
	}
	return t
}

// SupportedOpenShift returns the supported OpenShift versions, oldest first.
func SupportedOpenShift() []string {
	var versions []string
	for _, s := range supported {
		if s.Variant == OpenShift {
			versions = append(versions, s.Version)
		}
	}
	return versions
}
