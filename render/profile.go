package render

import (
	"fmt"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/assets"
)

// DefaultProfile returns the profile for a platform of the install-config without one in
// vipgen.yaml. A hypervisor stops its virtual machines for 0.1 to 1 s as a matter of course: at
// the end of a live migration, for a snapshot, or because its host is busy. Platforms with any
// kind of nodes (none, external) are taken for metal.
func DefaultProfile(platform string) v1alpha1.Profile {
	if assets.PlatformNamed(platform).Virtual {
		return v1alpha1.ProfileVirtual
	}
	return v1alpha1.ProfileFast
}

// chooseProfile sets the profile of a cluster whose VIPConfig has none.
func (in *Input) chooseProfile() {
	v := &in.VIP.Spec.VRRP
	if in.givenProfile = v.Profile != ""; !in.givenProfile && in.Install != nil {
		v.Profile = DefaultProfile(in.Install.Platform)
	}
}

// profileReason explains a profile that vipgen chose, and when to choose another.
func (in *Input) profileReason() string {
	platform := in.Install.Platform
	if DefaultProfile(platform) == v1alpha1.ProfileVirtual {
		return fmt.Sprintf("nodes of platform %s are virtual machines, and a holder that its hypervisor pauses for %v keeps its VIPs; spec.vrrp.profile: fast replaces a dead one sooner",
			platform, v1alpha1.Millis(v1alpha1.VirtualStallMS))
	}
	return fmt.Sprintf("nodes of platform %s are taken for metal; choose spec.vrrp.profile: virtual where they are virtual machines, which a hypervisor may pause for a while", platform)
}
