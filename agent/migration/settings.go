package migration

import "github.com/vipgen/vipgen/api/v1alpha1"

// InForce returns the VRRP settings of a node outside of a migration: kept are the
// last ones, nil for none. A node whose settings differ from the others' forms its own
// group and holds the VIP, too, so only a migration changes the settings of a
// running cluster.
func InForce(v v1alpha1.ClusterVRRP, kept *v1alpha1.VRRPSettings) v1alpha1.VRRPSettings {
	switch {
	case kept == nil:
		return v.Initial()
	case understands(*kept, v.Target):
		return v.Target
	}
	return *kept
}

// understands reports whether nodes with the settings a and b can share an election. With VRRPv3
// timing alone does not matter, because backups take the interval from the holder's
// adverts, if they receive one in time: a backup that just started or recovered waits for
// three of its own intervals (RFC 9568 section 6.1), so the holder's interval must be
// shorter than that.
func understands(a, b v1alpha1.VRRPSettings) bool {
	classic := func(v v1alpha1.VRRPSettings) bool { return v.Profile == v1alpha1.ProfileClassic }
	short, long := min(a.AdvertIntervalMS, b.AdvertIntervalMS), max(a.AdvertIntervalMS, b.AdvertIntervalMS)
	return a.Version == 3 && b.Version == 3 && a.Mode == b.Mode && classic(a) == classic(b) && long < 3*short
}
