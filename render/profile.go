package render

import (
	"fmt"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// chooseProfile fills in the profile of a cluster whose VIPConfig has none.
func (in *Input) chooseProfile() {
	v := &in.VIP.Spec.VRRP
	if in.givenProfile = v.Profile != ""; !in.givenProfile && in.Install != nil {
		v.Profile = v1alpha1.DefaultProfile(in.Install.Platform)
	}
}

// profileWhy says why the cluster has its profile, and what speaks for another.
func (in *Input) profileWhy() string {
	platform := in.Install.Platform
	switch {
	case in.givenProfile:
		return "spec.vrrp.profile says so"
	case v1alpha1.DefaultProfile(platform) == v1alpha1.ProfileVirtual:
		return fmt.Sprintf("nodes of platform %s are virtual machines, and a holder that its hypervisor pauses for %v keeps its VIPs; spec.vrrp.profile: fast replaces a dead one sooner",
			platform, v1alpha1.Millis(v1alpha1.VirtualStallMS))
	}
	return fmt.Sprintf("nodes of platform %s are taken for metal; choose spec.vrrp.profile: virtual where they are virtual machines, which a hypervisor may pause for a while", platform)
}
