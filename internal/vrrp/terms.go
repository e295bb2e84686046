package vrrp

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
	// Restarting says that HAProxy crashed a moment ago and is being started again.
	// Without the redirect clients of the VIP reach the local API server meanwhile.
	Restarting bool
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

// path is the way from a VIP through HAProxy. HAProxy alone is none: clients of a VIP
// without the redirect reach the API server of the node itself, or nothing (hard case 6).
//
// A crash of HAProxy moves no VIP for as long as HAProxy has to come back, if the node
// serves: by its own API server, or by HAProxy that is back, whatever the checks of it
// have yet to find out.
func (h Health) path() bool {
	if h.Restarting && (h.API || h.Redirect) {
		return !h.Unready
	}
	return h.HAProxy && h.Redirect && !h.Unready
}

// Term is one part of a priority, which follows from the node's health. The agent writes
// 1 (it is on) or 0 to the file of that name in v1alpha1.TrackDir, which keepalived
// watches, so that a change reaches the priority in milliseconds.
type Term struct {
	// Name is the track file's, unique on a node.
	Name string
	// Points are added to the priority while the term is on. A term with 0 points is a
	// veto: while it is on, the node cannot hold the VIP.
	Points int
	// Initial is what the file says before the agent has checked anything.
	Initial int
	// Meaning says in a few words when the term is on.
	Meaning string
	on      func(Health) bool
}

// On says whether the term is on, on a node of that health. The term is one of Terms.
func (t Term) On(h Health) bool { return t.on(h) }

// Terms of the API VIP on a control-plane node.
var apiTerms = []Term{
	{Name: "lb-path", Points: 20, Meaning: "HAProxy is ready and the redirect to it is in place", on: Health.path},
	// No failover when one of them restarts (hard case 7).
	{Name: "lb-or-api", Points: 5, Meaning: "the load balancer path or the local API server is healthy",
		on: func(h Health) bool { return h.path() || h.API }},
	{Name: "machine-config", Points: 3, Meaning: "the machine config server runs here",
		on: func(h Health) bool { return h.MachineConfig }},
}

// Terms of the DNS VIP of old clusters.
var dnsTerms = []Term{
	{Name: "dns", Points: 20, Meaning: "CoreDNS answers here", on: func(h Health) bool { return h.DNS }},
}

// Terms of the VIPs of an ingress controller; the group's name comes before theirs.
var ingressTerms = []Term{
	{Name: "ready", Points: 10, Meaning: "the router is ready", on: func(h Health) bool { return h.RouterReady }},
	{Name: "here", Points: 50, Meaning: "a router of this ingress controller runs here", on: func(h Health) bool { return h.RouterHere }},
	{Name: "away", Points: 0, Initial: 1, Meaning: "no router answers, or only another controller's: never holds the VIP",
		on: func(h Health) bool { return !h.RouterAnswers || h.RouterForeign }},
}

// Terms gives what a group's priority on a node of the given role is made of:
// the base, and what is added to it.
func Terms(g *v1alpha1.Group, role string) (base int, terms []Term) {
	switch {
	case g.Role == v1alpha1.GroupIngress:
		return IngressPriority, ofGroup(g, ingressTerms)
	case role == v1alpha1.RoleBootstrap:
		return BootstrapPriority, nil
	case g.Role == v1alpha1.GroupDNS:
		return ControlPlanePriority, dnsTerms
	case g.AdditionalAPI():
		// Each group has a redirect of its own. Machine configs are for nodes, which go
		// to the first API VIP.
		return ControlPlanePriority, ofGroup(g, apiTerms[:2])
	default:
		return ControlPlanePriority, apiTerms
	}
}

// FullPriority is that of a node on which everything works.
func FullPriority(g *v1alpha1.Group, role string) int {
	sum, terms := Terms(g, role)
	for _, t := range terms {
		sum += t.Points
	}
	return sum
}

// ofGroup gives terms the names that they have in a group of which there may be several.
func ofGroup(g *v1alpha1.Group, terms []Term) (out []Term) {
	for _, t := range terms {
		t.Name = g.Name + "-" + t.Name
		out = append(out, t)
	}
	return out
}
