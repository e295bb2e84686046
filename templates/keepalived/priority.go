package keepalived

import "github.com/vipgen/vipgen/api/v1alpha1"

// Base priorities of VRRP instances, in points; the highest sum wins.
const (
	// BootstrapPriority keeps the API VIP on the bootstrap until its own API
	// server is gone: more than a control-plane node can reach.
	BootstrapPriority = 70
	// ControlPlanePriority is that of API and DNS VIPs on the control plane.
	ControlPlanePriority = 40
	// IngressPriority is that of ingress VIPs on every node.
	IngressPriority = 20
)

// Term is one thing that the agent checks on its node. It writes 1 (true) or 0
// (false) to the file of that name in v1alpha1.TrackDir, which keepalived
// watches, so that a change reaches the priority in milliseconds.
type Term struct {
	// Name is the track file's, unique on a node.
	Name string
	// Points are added to the priority while the file says 1. A term with 0
	// points is a veto: while its file says 1, the node cannot hold the VIP.
	Points int
	// Initial is what the file says before the agent has checked anything.
	Initial int
	// Meaning says in a few words when the file says 1.
	Meaning string
}

// Names of terms; those of ingress groups begin with the group's.
const (
	termPath          = "lb-path"
	termPathOrAPI     = "lb-or-api"
	termMachineConfig = "machine-config"
	termDNS           = "dns"
	suffixReady       = "-ready"
	suffixHere        = "-here"
	suffixAway        = "-away"
)

// ofGroup is the name of a term in a group that is not the only one of its kind:
// each has a redirect of its own.
func ofGroup(g *v1alpha1.Group, term string) string {
	if g.AdditionalAPI() {
		return g.Name + "-" + term
	}
	return term
}

// Terms of the API VIP on a control-plane node.
var apiTerms = []Term{
	{Name: termPath, Points: 20, Meaning: "HAProxy is ready and the redirect to it is in place"},
	{Name: termPathOrAPI, Points: 5, Meaning: "the load balancer path or the local API server is healthy"},
	{Name: termMachineConfig, Points: 3, Meaning: "the machine config server runs here"},
}

// Terms of the DNS VIP of old clusters.
var dnsTerms = []Term{
	{Name: termDNS, Points: 20, Meaning: "CoreDNS answers here"},
}

// Terms gives what a group's priority on a node of the given role is made of:
// the base, and what is added to it.
func Terms(g *v1alpha1.Group, role string) (base int, terms []Term) {
	switch {
	case g.Role == v1alpha1.GroupIngress:
		return IngressPriority, []Term{
			{Name: g.Name + suffixReady, Points: 10, Meaning: "the router is ready"},
			{Name: g.Name + suffixHere, Points: 50, Meaning: "a router of this ingress controller runs here"},
			{Name: g.Name + suffixAway, Points: 0, Initial: 1, Meaning: "no router answers, or only another controller's: never holds the VIP"},
		}
	case role == v1alpha1.RoleBootstrap:
		return BootstrapPriority, nil
	case g.Role == v1alpha1.GroupDNS:
		return ControlPlanePriority, dnsTerms
	case g.AdditionalAPI():
		// Machine configs are for nodes, which go to the first API VIP.
		for _, t := range apiTerms[:2] {
			t.Name = ofGroup(g, t.Name)
			terms = append(terms, t)
		}
		return ControlPlanePriority, terms
	default:
		return ControlPlanePriority, apiTerms
	}
}
