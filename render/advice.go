package render

import (
	"fmt"

	"github.com/vipgen/vipgen/assets"
)

// HasVIPs says whether the file that describes the cluster has VIPs itself.
func (in *Input) HasVIPs() bool {
	return len(in.Install.APIVIPs)+len(in.Install.IngressVIPs) > 0
}

// UsuallyWithoutVIPs says whether a cluster usually has no VIPs: a single node on a
// platform that has no field for them.
func (in *Input) UsuallyWithoutVIPs() bool {
	return !assets.PlatformNamed(in.Install.Platform).HasVIPs() && in.Install.ControlPlane.Replicas == 1
}

// LoadBalancerAdvice says which spec.loadBalancer.type goes with a cluster.
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
