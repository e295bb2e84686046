package keepalived

import (
	"encoding/json"
	"os"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/atomicfile"
)

// inForce says which settings of VRRP the node runs now: kept are those that it
// ran last, nil if it never did. A node that differs from the others forms a
// group of its own and holds the VIP beside them, so that only the coordinated
// switch changes the settings of a running cluster.
func inForce(v v1alpha1.ClusterVRRP, kept *v1alpha1.VRRPSettings) v1alpha1.VRRPSettings {
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

// readSettings returns what writeSettings wrote, nil for a file that is missing
// or worth nothing.
func readSettings(path string) *v1alpha1.VRRPSettings {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var v v1alpha1.VRRPSettings
	if json.Unmarshal(data, &v) != nil {
		return nil
	}
	n := v1alpha1.Node{Name: "node", Role: v1alpha1.RoleMaster, VRRP: &v}
	if n.Validate().Err() != nil {
		return nil
	}
	return &v
}

func writeSettings(path string, v v1alpha1.VRRPSettings) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = atomicfile.Write(path, append(data, '\n'), 0o644)
	return err
}
