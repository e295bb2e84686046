package assets

import "slices"

// PlatformKind is the role of VIPs on a platform.
type PlatformKind int

const (
	// OtherPlatform has no VIPs and no load balancer, or is unknown.
	OtherPlatform PlatformKind = iota
	// OnPremises is supported by vipgen: machines hold the VIPs.
	OnPremises
	// Cloud brings its own load balancer.
	Cloud
)

// Platform is a platform of OpenShift's installer.
type Platform struct {
	// Name is its key below platform in an install-config.
	Name string
	Kind PlatformKind
	// Namespace is its short name in the namespace of the operator's static pods
	// (machine-config-operator, onPremPlatformShortName). Platforms without one have no VIPs in
	// an install-config, and no keepalived of OpenShift's.
	Namespace string
	// Assisted is its platformType in an AgentClusterInstall (assisted-service, PlatformType);
	// empty where assisted installations do not support it.
	Assisted string
	// Virtual is set where nodes are virtual machines.
	Virtual bool
}

// Platforms lists the platforms of the installer, past and present, in the order in which
// reports name them.
var Platforms = []Platform{
	{"baremetal", OnPremises, "kni", "BareMetal", false},
	{"vsphere", OnPremises, "vsphere", "VSphere", true},
	{"openstack", OnPremises, "openstack", "", true},
	{"ovirt", OnPremises, "ovirt", "", true},
	{"nutanix", OnPremises, "nutanix", "Nutanix", true},
	{"none", OnPremises, "", "None", false},
	{"external", OnPremises, "", "External", false},
	{"alibabacloud", Cloud, "", "", true},
	{"aws", Cloud, "", "", true},
	{"azure", Cloud, "", "", true},
	{"gcp", Cloud, "", "", true},
	{"ibmcloud", Cloud, "", "", true},
	{"powervs", Cloud, "", "", true},
	{"equinixmetal", OtherPlatform, "", "", false},
	{"kubevirt", OtherPlatform, "", "", true},
	{"libvirt", OtherPlatform, "", "", true},
	{"powervc", OtherPlatform, "", "", true},
}

// PlatformNamed returns the platform with a key; the zero value for an unknown one.
func PlatformNamed(name string) Platform {
	return PlatformWhere(func(p Platform) bool { return p.Name == name })
}

// PlatformWhere returns the first platform that a function accepts, or the zero value.
func PlatformWhere(is func(Platform) bool) Platform {
	if i := slices.IndexFunc(Platforms, is); i >= 0 {
		return Platforms[i]
	}
	return Platform{}
}

// PlatformNames returns the keys of the platforms of a kind.
func PlatformNames(kind PlatformKind) (out []string) {
	for _, p := range Platforms {
		if p.Kind == kind {
			out = append(out, p.Name)
		}
	}
	return out
}

// HasVIPs reports whether install-configs have VIPs on the platform, which OpenShift's
// own keepalived holds unless the load balancer is the user's.
func (p Platform) HasVIPs() bool { return p.Namespace != "" }

// Bare reports whether vipgen supports the platform without VIPs in install-configs: none and
// external.
func (p Platform) Bare() bool { return p.Kind == OnPremises && !p.HasVIPs() }
