package render

import (
	"github.com/vipgen/vipgen/api/problem"
)

// checkRendezvous warns where nothing holds the API VIP while a cluster bootstraps: an
// agent-based or assisted installation makes the Ignition config of its bootstrap host itself
// (openshift/assisted-service, internal/ignition/installmanifests.go) and lays it over the live
// system (openshift/assisted-installer, src/installer/installer.go, startBootstrap). None of
// their inputs adds files there. See "Agent-based installations" in docs/gitops.md.
func (r *resolver) checkRendezvous() {
	i := r.in.Install
	if !r.agentBased() && r.in.Manifests == nil || r.operatorsKeepalived() || r.withoutVIPs() || len(r.api) == 0 || i.ControlPlane.Replicas == 1 {
		return
	}
	field, found := "platform."+i.Platform, "an agent-based installation on platform "+i.Platform
	hint := "use a load balancer outside of the cluster until the control plane runs ('vipgen external-lb')"
	if i.LoadBalancer == "UserManaged" {
		field, found = field+".loadBalancer.type", "UserManaged in an agent-based installation"
		hint = "leave the load balancer to OpenShift, whose keepalived runs there and hands over to vipgen's, or " + hint
	}
	r.report(problem.Warning, layer(i.Doc), problem.Problem{Code: problem.RendezvousVIP, Field: field, Found: found,
		Expected: "something that holds the API VIP while the rendezvous host bootstraps the cluster: nothing of vipgen's runs there", Hint: hint})
}
