package vrrp

import "github.com/vipgen/vipgen/api/v1alpha1"

// Preference orders the nodes that announce the VIPs of a group to routers, by the health
// that decides VRRP priorities: routers send traffic to all nodes with the lowest one.
type Preference int

// Preferences. A node that cannot serve at all withdraws; one that serves worse than others
// announces nevertheless, so that one does if all are alike (hard case 45).
const (
	Withdrawn Preference = iota - 1
	Preferred
	Second
	Third
	Last
	// Leaving is worse than any other: the node is about to withdraw.
	Leaving
)

// Announces reports whether the node announces the VIPs.
func (p Preference) Announces() bool { return p != Withdrawn }

// Prefer returns the preference of a node of a role for the VIPs of a group.
func Prefer(g *v1alpha1.Group, role string, h Health) Preference {
	switch {
	case g.Role == v1alpha1.GroupIngress:
		return preferRouter(h)
	case role == v1alpha1.RoleBootstrap:
		return Preferred
	case g.Role == v1alpha1.GroupDNS && h.DNS:
		return Preferred
	case g.Role == v1alpha1.GroupDNS:
		return Withdrawn
	case h.path() && (h.MachineConfig || g.AdditionalAPI()):
		return Preferred
	case h.path():
		return Second
	case h.API:
		// Without the redirect, clients of the VIP reach the node's own API server.
		return Third
	case h.HAProxy && h.Redirect:
		// No API server is ready, but they accept connections (hard case 45).
		return Last
	}
	return Withdrawn
}

// preferRouter ranks nodes with routers as the terms of ingress VIPs do.
func preferRouter(h Health) Preference {
	switch {
	case !h.RouterAnswers || h.RouterForeign:
		return Withdrawn
	case h.RouterHere && h.RouterReady:
		return Preferred
	case h.RouterHere:
		return Second
	case h.RouterReady:
		return Third
	}
	return Last
}

// PreferenceWords returns what a preference means for the VIPs of a group.
func PreferenceWords(g *v1alpha1.Group, role string, p Preference) string {
	switch {
	case p == Leaving:
		return "the node is leaving"
	case role == v1alpha1.RoleBootstrap && p == Preferred:
		return "the bootstrap host, before all others"
	}
	words := apiWords
	switch g.Role {
	case v1alpha1.GroupIngress:
		words = routerWords
	case v1alpha1.GroupDNS:
		words = dnsWords
	}
	return words[p]
}

var (
	apiWords = map[Preference]string{
		Preferred: "the load balancer path works",
		Second:    "the load balancer path works, without a machine config server here",
		Third:     "only the node's own API server serves",
		Last:      "HAProxy has no API server that is ready",
		Withdrawn: "no path to an API server",
	}
	routerWords = map[Preference]string{
		Preferred: "a router of this ingress controller is ready",
		Second:    "a router of this ingress controller is not ready",
		Third:     "a router is ready, of which ingress controller is unknown",
		Last:      "a router answers, and is not ready",
		Withdrawn: "no router answers, or only another controller's",
	}
	dnsWords = map[Preference]string{Preferred: "CoreDNS answers", Withdrawn: "CoreDNS does not answer"}
)
