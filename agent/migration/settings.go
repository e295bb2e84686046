package migration

import "github.com/vipgen/vipgen/api/v1alpha1"

// InForce says which settings of VRRP a node runs that moves with nobody: kept are those
// that it ran last, nil if it never did. A node that differs from the others forms a
// group of its own and holds the VIP beside them, so that only the coordinated
// switch changes the settings of a running cluster.
func InForce(v v1alpha1.ClusterVRRP, kept *v1alpha1.VRRPSettings) v1alpha1.VRRPSettings {
	switch {
	case kept == nil:
		return v.Initial()
	case understands(*kept, v.Target):
		return v.Target
	}
	return *kept
}

// understands says whether nodes that run the one settings and nodes that run the
// other elect together. Timing alone keeps no node from it with VRRPv3, where backups
// take the interval from the holder's adverts, as long as each hears one in time: a
// backup that has just started, or is fit again, waits for three intervals of its own
// (RFC 9568 section 6.1), so that no holder's may be as long as that.
func understands(a, b v1alpha1.VRRPSettings) bool {
	classic := func(v v1alpha1.VRRPSettings) bool { return v.Profile == v1alpha1.ProfileClassic }
	short, long := min(a.AdvertIntervalMS, b.AdvertIntervalMS), max(a.AdvertIntervalMS, b.AdvertIntervalMS)
	return a.Version == 3 && b.Version == 3 && a.Mode == b.Mode && classic(a) == classic(b) && long < 3*short
}
