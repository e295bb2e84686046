package render

import (
	"fmt"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/assets"
)

// HasVIPs reports whether the install-config or the object that stands for it has VIPs.
func (in *Input) HasVIPs() bool {
	return len(in.Install.APIVIPs)+len(in.Install.IngressVIPs) > 0
}

// UsuallyWithoutVIPs reports whether a cluster usually has no VIPs: a single node on a
// platform that has no field for them.
func (in *Input) UsuallyWithoutVIPs() bool {
	return !assets.PlatformNamed(in.Install.Platform).HasVIPs() && in.Install.ControlPlane.Replicas == 1
}

// chooseLoadBalancer sets type None for a cluster that usually has no VIPs and has none, so
// that the single nodes of a fleet need no vipgen.yaml. With a bootstrap host, api-int must not
// be the node's address yet: there the user has to choose.
func (in *Input) chooseLoadBalancer() {
	s := &in.VIP.Spec
	if in.Install == nil || !in.UsuallyWithoutVIPs() || s.LoadBalancer.Type != "" ||
		len(s.APIVIPs)+len(s.IngressVIPs)+len(s.Ingress)+len(s.AdditionalAPIVIPs) > 0 {
		return
	}
	if in.Manifests != nil || in.Install.BootstrapInPlace || in.Agent != nil && in.Agent.RendezvousIP != nil {
		in.assumedNone, s.LoadBalancer.Type = true, v1alpha1.LoadBalancerNone
	}
}

// LoadBalancerAdvice returns the spec.loadBalancer.type that fits the cluster.
func (in *Input) LoadBalancerAdvice() string {
	platform := in.Install.Platform
	switch {
	case in.UsuallyWithoutVIPs():
		return "A single node needs no VIPs: its names are its own address."
	case !assets.PlatformNamed(platform).HasVIPs():
		return "Platform " + platform + " has no field for VIPs: give them above, or None where the site has another way to the API."
	case in.Install.LoadBalancer == "UserManaged":
		return "The install-config has UserManaged: External if the VIPs there are those of a load balancer outside of the cluster."
	}
	return fmt.Sprintf("OpenShift's own keepalived holds the API VIP while the cluster is installed; with platform.%s.loadBalancer.type: UserManaged in the install-config it is vipgen's from the start.", platform)
}
