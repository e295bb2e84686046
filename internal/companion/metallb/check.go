package metallb

import (
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/render/installconfig"
)

func (r *resolver) checkCluster() {
	for _, a := range r.plan.params.Addresses {
		r.checkAddress(a)
		r.checkServiceFamily(installconfig.Family(a))
		r.checkPeerFamily(installconfig.Family(a))
	}
	r.checkNodes()
}

// checkAddress reports an address that is in use, or that nodes cannot answer for.
func (r *resolver) checkAddress(a netip.Addr) {
	const flag = "--address"
	spec := r.c.Config.Spec
	if whose := r.inUse(a); whose != "" {
		r.badFlag(problem.VIPTaken, flag, a.String(), whose)
		return
	}
	networks := spec.AssumedNetworks()
	i := slices.IndexFunc(networks, func(n netip.Prefix) bool { return n.Contains(a) })
	switch {
	case i >= 0 && v1alpha1.IsEdge(networks[i], a):
		r.badFlag(problem.BadAddress, flag, a.String(), "an address of a host, this is the network or broadcast address of "+networks[i].String())
	case i < 0 && r.plan.own && !r.plan.bgp && len(r.q.Interfaces) == 0:
		r.Warn(problem.VIPOutsideNetwork, flag, a.String(), "an address in "+lists.Join(networks, " or "),
			"with l2, nodes answer for it in networks that they are in: for another one, give --interface; a routed address takes --mode bgp")
	}
}

// inUse describes the expected address where it is in use, or returns "".
func (r *resolver) inUse(a netip.Addr) string {
	const own = "an address of its own, this is the "
	for _, g := range r.c.Config.Spec.Groups {
		if slices.Contains(g.VIPs, a) {
			return own + "VIP of " + g.Name + ", which keepalived has"
		}
	}
	for _, n := range slices.Concat(r.c.PodNetworks, r.c.ServiceNetworks) {
		if n.Contains(a) {
			return "an address outside of " + n.String() + ", which the cluster uses inside"
		}
	}
	var host string
	for _, p := range r.c.Config.Spec.Peers {
		// The bootstrap host is often one of the others.
		if slices.Contains(p.Addresses, a) && (host == "" || p.Role != v1alpha1.RoleBootstrap) {
			host = own + "one of " + p.Name
		}
	}
	return host
}

// checkServiceFamily requires a family of the cluster's Services.
func (r *resolver) checkServiceFamily(family string) {
	networks := r.c.ServiceNetworks
	if len(networks) == 0 || slices.ContainsFunc(networks, func(n netip.Prefix) bool { return installconfig.Family(n.Addr()) == family }) {
		return
	}
	r.badFlag(problem.FamilyOrder, "--address", family, "a family of networking.serviceNetwork, "+lists.Join(networks, " or ")+": the cluster has no other Services")
}

// checkPeerFamily requires the session's family: MetalLB announces others to a router only by
// settings that differ between its versions.
func (r *resolver) checkPeerFamily(family string) {
	peers := r.plan.params.Peers
	if len(peers) == 0 || slices.ContainsFunc(peers, func(p Peer) bool { return installconfig.Family(p.Address.Addr()) == family }) {
		return
	}
	r.badFlag(problem.FamilyOrder, "--bgp-peer", "no router with an "+family+" address", "one, for the "+family+" address: it is announced in sessions of its family")
}
