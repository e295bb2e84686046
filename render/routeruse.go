package render

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/vrrp/routerids"
	"github.com/vipgen/vipgen/render/installconfig"
)

// RouterUses returns the virtual router IDs of a cluster for routerids' search for collisions,
// without the checks of a whole cluster. It has none where nodes hold no VIPs.
func (in *Input) RouterUses() routerids.Cluster {
	c := routerids.Cluster{Name: in.Install.Name, Network: in.VIP.Spec.Network, Reserved: in.VIP.Spec.VRRP.ReservedRouterIDs}
	r := &resolver{in: in}
	r.collectVIPs()
	spec := v1alpha1.ClusterConfigSpec{LoadBalancer: in.VIP.Spec.LoadBalancer.Type}
	planned := lists.Filter(r.groups(r.domain()), r.elected)
	if spec.LoadBalancer != v1alpha1.LoadBalancerInCluster || len(planned) == 0 {
		c.Networks = installconfig.Prefixes(in.Install.MachineNetworks)
		return c
	}
	spec.Groups = append(spec.Groups, lists.Map(planned, func(g groupPlan) v1alpha1.Group { return g.Group })...)
	spec.MachineNetworks = r.machineNetworks(spec.Groups)
	c.Networks = spec.AssumedNetworks()
	for _, g := range planned {
		u := routerids.Use{Group: g.Name, ID: g.VirtualRouterID, VIPs: g.VIPs, Field: g.field, Chosen: g.wanted != 0,
			IPv4: slices.ContainsFunc(g.VIPs, netip.Addr.Is4), IPv6: slices.ContainsFunc(g.VIPs, netip.Addr.Is6)}
		if g.Name == v1alpha1.FirstAPI && r.besideOperators() {
			u.Fixed = fmt.Sprintf("OpenShift's own keepalived has it on the bootstrap host; platform.%s.loadBalancer.type: UserManaged, or another name of the cluster, frees it", in.Install.Platform)
		}
		c.Uses = append(c.Uses, u)
	}
	return c
}
