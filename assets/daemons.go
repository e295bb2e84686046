package assets

import "strings"

// Daemons are the daemon versions in the images of an OpenShift release, as MAJOR.MINOR or
// longer.
type Daemons struct {
	HAProxy string
	// Keepalived has several where a release has images built on several releases of RHEL.
	Keepalived []string
}

// Oldest are the oldest daemons of the supported releases. Later ones accept their
// configuration.
var Oldest = Daemons{HAProxy: "2.2", Keepalived: []string{"2.1.5", "2.2.7"}}

// DaemonsOf returns the daemons of an OpenShift release such as "4.18" or "4.18.3" (hard case
// 29); "" is any release, and returns the oldest. Releases after the end of the table have
// those of its end.
func DaemonsOf(release string) Daemons {
	parts := strings.SplitN(release, ".", 3)
	switch strings.Join(parts[:min(len(parts), 2)], ".") {
	case "", "4.12", "4.13":
		return Oldest
	case "4.14", "4.15":
		return Daemons{HAProxy: "2.6", Keepalived: Oldest.Keepalived}
	default:
		return Daemons{HAProxy: "2.8", Keepalived: []string{"2.2.8"}}
	}
}
