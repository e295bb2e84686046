package vrrp

import "github.com/vipgen/vipgen/api/v1alpha1"

// Base priorities of VRRP instances, in points; the highest sum wins.
const (
	// BootstrapPriority keeps the API VIP on the bootstrap until its own API server is
	// gone: it is more than a control-plane node can reach.
	BootstrapPriority = 70
	// ControlPlanePriority is the base of API and DNS VIPs on the control plane.
	ControlPlanePriority = 40
	// IngressPriority is the base of ingress VIPs on every node.
	IngressPriority = 20
)

// Health holds the known state of a node's services, as far as it decides the election
// for one group. Unknown services count as failed.
type Health struct {
	// HAProxy reports that HAProxy runs, with at least one API server that accepts
	// connections.
	HAProxy bool
	// Unready reports that HAProxy has seen no ready API server for UnreadyAfter.
	Unready bool
	// Redirect reports that every VIP of the API group is redirected to HAProxy.
	Redirect bool
	// Restarting reports that HAProxy crashed just now and is being restarted. Without
	// the redirect clients of the VIP reach the local API server meanwhile.
	Restarting bool
	// API reports that the local API server is healthy.
	API bool
	// MachineConfig reports that the machine config server is healthy.
	MachineConfig bool
	// DNS reports that CoreDNS is healthy.
	DNS bool
	// RouterAnswers and RouterReady are the state of the router on the group's port, of
	// any ingress controller.
	RouterAnswers, RouterReady bool
	// RouterHere reports, by the API's last answer, that a ready router of the group's
	// own ingress controller runs here (hard case 21).
	RouterHere bool
	// RouterForeign reports, by the API's last answer, that only routers of other ingress
	// controllers run here, so that an answer is not from the group's own.
	RouterForeign bool
}

// path reports whether the path from a VIP through HAProxy works. HAProxy alone is not
// enough: clients of a VIP without the redirect reach the API server of the node itself,
// or nothing (hard case 6).
//
// A crash of HAProxy moves no VIP while HAProxy has time to restart, if the node serves:
// through its own API server, or a restarted HAProxy that the checks have yet to confirm.
func (h Health) path() bool {
	if h.Restarting && (h.API || h.Redirect) {
		return !h.Unready
	}
	return h.HAProxy && h.Redirect && !h.Unready
}

// Term is a part of a priority that depends on the node's health. The agent writes 1 (on)
// or 0 to the file with its name in v1alpha1.TrackDir, which keepalived watches, so that
// a change reaches the priority in milliseconds.
type Term struct {
	// Name is the name of the track file, unique on a node.
	Name string
	// Points are added to the priority while the term is on. A term with 0 points is a
	// veto: while it is on, the node cannot hold the VIP.
	Points int
	// Initial is the content of the file before the first check.
	Initial int
	// Meaning describes when the term is on.
	Meaning string
	on      func(Health) bool
}

// On reports whether the term, one of PriorityTerms, is on at that health.
func (t Term) On(h Health) bool { return t.on(h) }

// apiTerms are the terms of the API VIP on a control-plane node.
var apiTerms = []Term{
	{Name: "lb-path", Points: 20, Meaning: "HAProxy is ready and the redirect to it is in place", on: Health.path},
	// No failover if either restarts (hard case 7).
	{Name: "lb-or-api", Points: 5, Meaning: "the load balancer path or the local API server is healthy",
		on: func(h Health) bool { return h.path() || h.API }},
	{Name: "machine-config", Points: 3, Meaning: "the machine config server runs here",
		on: func(h Health) bool { return h.MachineConfig }},
}

// dnsTerms are the terms of the DNS VIP of old clusters.
var dnsTerms = []Term{
	{Name: "dns", Points: 20, Meaning: "CoreDNS answers here", on: func(h Health) bool { return h.DNS }},
}

// ingressTerms are the terms of the VIPs of an ingress controller; names get the group's name as a prefix.
var ingressTerms = []Term{
	{Name: "ready", Points: 10, Meaning: "the router is ready", on: func(h Health) bool { return h.RouterReady }},
	{Name: "here", Points: 50, Meaning: "a router of this ingress controller runs here", on: func(h Health) bool { return h.RouterHere }},
	{Name: "away", Points: 0, Initial: 1, Meaning: "no router answers, or only another controller's: never holds the VIP",
		on: func(h Health) bool { return !h.RouterAnswers || h.RouterForeign }},
}

// PriorityTerms returns the base and the terms of a group's priority on a node of a role.
func PriorityTerms(g *v1alpha1.Group, role string) (base int, terms []Term) {
	switch {
	case g.Role == v1alpha1.GroupIngress:
		return IngressPriority, prefixNames(g, ingressTerms)
	case role == v1alpha1.RoleBootstrap:
		return BootstrapPriority, nil
	case g.Role == v1alpha1.GroupDNS:
		return ControlPlanePriority, dnsTerms
	case g.AdditionalAPI():
		// Each group has its own redirect. The sum is that of the first API VIP: a VIP that
		// joins another group does not leave nodes that know of it for those that do not yet.
		return ControlPlanePriority, prefixNames(g, apiTerms)
	default:
		return ControlPlanePriority, apiTerms
	}
}

// FullPriority returns the priority of a node on which everything works.
func FullPriority(g *v1alpha1.Group, role string) int {
	sum, terms := PriorityTerms(g, role)
	for _, t := range terms {
		sum += t.Points
	}
	return sum
}

// prefixNames returns terms with names unique to the group.
func prefixNames(g *v1alpha1.Group, terms []Term) (out []Term) {
	for _, t := range terms {
		t.Name = g.Name + "-" + t.Name
		out = append(out, t)
	}
	return out
}
