package v1alpha1

import "cmp"

// DefaultPorts are the usual ports, most of them known to operators of these
// clusters.
var DefaultPorts = Ports{
	API:               6443,
	MachineConfig:     22623,
	HAProxy:           9445,
	HAProxyReady:      9444,
	HAProxyMonitor:    9454,
	KeepalivedMonitor: 9455,
	FirewallMonitor:   9456,
	CoreDNSMonitor:    9457,
	MDNSMonitor:       9458,
	BGPMonitor:        9461,
	CoreDNSHealth:     18080,
	RouterHealth:      1936,
	Ironic:            6385,
}

// Default fills in the fields that a user left out and that do not depend on the
// install-config. The caller fills in the others before.
func (c *VIPConfig) Default() {
	s := &c.Spec
	s.LoadBalancer.Type = cmp.Or(s.LoadBalancer.Type, LoadBalancerInCluster)
	s.BGP.Default()
	s.VRRP.Profile = cmp.Or(s.VRRP.Profile, ProfileFast)
	s.VRRP.Mode = cmp.Or(s.VRRP.Mode, ModeUnicast)
	for _, p := range s.Ports.list(&DefaultPorts) {
		*p.port = cmp.Or(*p.port, *p.usual)
	}
	if s.VRRP.Profile == ProfileCustom {
		s.VRRP.Version = cmp.Or(s.VRRP.Version, 3)
	}
}

// FastIntervalMS is the time between two adverts of the fast profile, in
// milliseconds: twice the shortest that moved no VIP while all cores were busy
// (docs/concepts.md).
const FastIntervalMS = 40

// VirtualIntervalMS is the time between two adverts of the virtual profile, in milliseconds: a
// holder that is paused for VirtualStallMS keeps its VIPs, whatever the priority of its
// backups.
//
// A backup takes over 3 intervals and the skew, (256-priority)/256 of one, after the last
// advert (RFC 9568 section 6.1). At worst the next one was just due when the holder was paused,
// and is sent when it resumes: a pause may last for 2 intervals and the skew. The highest
// priority of a backup is 80, a node of an ingress group on which everything works, with a skew
// of 0.69: 200 ms tolerate a pause of 537 ms, which leaves 37 ms for a holder that resumes
// late. A dead holder is replaced after 747 ms at most, by a control-plane node of priority 68.
const VirtualIntervalMS = 200

// VirtualStallMS is how long a holder of the virtual profile may be paused without losing a
// VIP, in milliseconds.
const VirtualStallMS = 500

// Settings returns the user's VRRP settings, with defaults applied before.
func (v VRRP) Settings() VRRPSettings {
	switch v.Profile {
	case ProfileClassic:
		return ClassicSettings(v.Mode)
	case ProfileCustom:
		return VRRPSettings{Profile: ProfileCustom, Mode: v.Mode, Version: v.Version, AdvertIntervalMS: v.AdvertInterval.Milliseconds()}
	case ProfileVirtual:
		return VRRPSettings{Profile: ProfileVirtual, Mode: v.Mode, Version: 3, AdvertIntervalMS: VirtualIntervalMS}
	default:
		return VRRPSettings{Profile: ProfileFast, Mode: v.Mode, Version: 3, AdvertIntervalMS: FastIntervalMS}
	}
}

// ClassicSettings returns the settings of the operator's own keepalived.
func ClassicSettings(m Mode) VRRPSettings {
	return VRRPSettings{Profile: ProfileClassic, Mode: m, Version: 2, AdvertIntervalMS: 1000}
}

// Owner returns the name of the port with a number, as in ports of vipgen.yaml, or "".
func (p Ports) Owner(port int) string {
	for _, n := range p.list(&p) {
		if *n.port == port {
			return n.name
		}
	}
	return ""
}

type namedPort struct {
	name  string
	port  *int
	usual *int
}

func (p *Ports) list(usual *Ports) []namedPort {
	return []namedPort{
		{"api", &p.API, &usual.API},
		{"machineConfig", &p.MachineConfig, &usual.MachineConfig},
		{"haproxy", &p.HAProxy, &usual.HAProxy},
		{"haproxyReady", &p.HAProxyReady, &usual.HAProxyReady},
		{"haproxyMonitor", &p.HAProxyMonitor, &usual.HAProxyMonitor},
		{"keepalivedMonitor", &p.KeepalivedMonitor, &usual.KeepalivedMonitor},
		{"firewallMonitor", &p.FirewallMonitor, &usual.FirewallMonitor},
		{"corednsMonitor", &p.CoreDNSMonitor, &usual.CoreDNSMonitor},
		{"mdnsMonitor", &p.MDNSMonitor, &usual.MDNSMonitor},
		{"bgpMonitor", &p.BGPMonitor, &usual.BGPMonitor},
		{"corednsHealth", &p.CoreDNSHealth, &usual.CoreDNSHealth},
		{"routerHealth", &p.RouterHealth, &usual.RouterHealth},
		{"ironic", &p.Ironic, &usual.Ironic},
	}
}
