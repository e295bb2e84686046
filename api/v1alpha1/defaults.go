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
	CoreDNSHealth:     18080,
	RouterHealth:      1936,
	Ironic:            6385,
}

// Default fills in what a user left out and what does not depend on the
// install-config.
func (c *VIPConfig) Default() {
	s := &c.Spec
	s.LoadBalancer.Type = cmp.Or(s.LoadBalancer.Type, LoadBalancerInCluster)
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
// (docs/timing.md).
const FastIntervalMS = 40

// Settings gives the way of electing that the user asked for, of a VIPConfig
// with defaults.
func (v VRRP) Settings() VRRPSettings {
	switch v.Profile {
	case ProfileClassic:
		return ClassicSettings(v.Mode)
	case ProfileCustom:
		return VRRPSettings{Profile: ProfileCustom, Mode: v.Mode, Version: v.Version, AdvertIntervalMS: v.AdvertInterval.Milliseconds()}
	default:
		return VRRPSettings{Profile: ProfileFast, Mode: v.Mode, Version: 3, AdvertIntervalMS: FastIntervalMS}
	}
}

// ClassicSettings are those of the operator's own keepalived.
func ClassicSettings(m Mode) VRRPSettings {
	return VRRPSettings{Profile: ProfileClassic, Mode: m, Version: 2, AdvertIntervalMS: 1000}
}

// Owner is the name of the port with that number, as in ports of vipgen.yaml; ""
// for none.
func (p Ports) Owner(port int) string {
	for _, n := range p.list(&p) {
		if *n.port == port {
			return n.name
		}
	}
	return ""
}

// namedPort is a port with its field's name and its usual value.
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
		{"corednsHealth", &p.CoreDNSHealth, &usual.CoreDNSHealth},
		{"routerHealth", &p.RouterHealth, &usual.RouterHealth},
		{"ironic", &p.Ironic, &usual.Ironic},
	}
}
