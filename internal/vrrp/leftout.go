package vrrp

import (
	"slices"
	"strings"
)

// Reasons for a node to take no part in VIPs of its role, by design or on request. Other reasons
// are faults if they last: those of Join, and of agent/keepalived/membership.
const (
	LeftOutLoadBalancer  = "the nodes hold no VIPs: the load balancer is "     // and its type
	LeftOutArbiter       = "OpenShift's own keepalived does not know arbiters" // hard case 32
	LeftOutRemoteWorker  = "this node is in no network with a VIP"             // hard case 9
	LeftOutByModeFile    = "the mode file leaves it out (without)"             // migration
	LeftOutElsewhere     = "this node has no address in the network of "       // and the VIP
	LeftOutElsewhereAPI  = "other nodes have addresses in the network of "     // and the VIP
	LeftOutBootstrapGone = "the API server of this bootstrap host has gone"    // hard case 8
	LeftOutBootstrapLate = "the cluster does without this bootstrap host"      // hard case 8
)

// Intended returns the intended reasons.
func Intended() []string {
	return []string{LeftOutLoadBalancer, LeftOutArbiter, LeftOutRemoteWorker, LeftOutElsewhere, LeftOutElsewhereAPI, LeftOutByModeFile, LeftOutBootstrapGone, LeftOutBootstrapLate}
}

// IsIntended reports whether a reason, possibly after the name of a group or an instance,
// is an intended one.
func IsIntended(why string) bool {
	return slices.ContainsFunc(Intended(), func(known string) bool { return strings.Contains(why, known) })
}
