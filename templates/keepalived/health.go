package keepalived

import (
	"fmt"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// Health is what is known to work on a node, as far as it decides who holds the
// VIPs of one group. What is not known does not work.
type Health struct {
	// HAProxy runs, with at least one API server behind it that takes connections.
	HAProxy bool
	// Unready says that no API server has been ready for UnreadyAfter, as HAProxy sees
	// it.
	Unready bool
	// Redirect leads from every VIP of the API group to HAProxy.
	Redirect bool
	// API is the local API server.
	API bool
	// MachineConfig is the machine config server.
	MachineConfig bool
	// DNS is CoreDNS.
	DNS bool
	// RouterAnswers and RouterReady are what the router on the group's port says,
	// whichever controller's it is.
	RouterAnswers, RouterReady bool
	// RouterHere is the API's last word: a ready router of the group's own ingress
	// controller runs here (hard case 21).
	RouterHere bool
	// RouterForeign is the API's last word: the routers here are of other ingress
	// controllers alone, so that whatever answers is none of the group's own.
	RouterForeign bool
}

// Says gives what the file of a term of the group says on a node: true is 1.
//
// A node that HAProxy alone makes look well gets no points: clients of a VIP
// without the redirect reach the API server of the node itself, or nothing (hard
// case 6).
func (h Health) Says(g *v1alpha1.Group, term string) (bool, error) {
	path := h.HAProxy && h.Redirect && !h.Unready
	switch term {
	case ofGroup(g, termPath):
		return path, nil
	case ofGroup(g, termPathOrAPI):
		return path || h.API, nil // no failover when one of them restarts (hard case 7)
	case termMachineConfig:
		return h.MachineConfig, nil
	case termDNS:
		return h.DNS, nil
	case g.Name + suffixReady:
		return h.RouterReady, nil
	case g.Name + suffixHere:
		return h.RouterHere, nil
	case g.Name + suffixAway:
		return !h.RouterAnswers || h.RouterForeign, nil
	}
	return false, fmt.Errorf("nobody knows the term %q of group %s", term, g.Name)
}
