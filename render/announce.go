package render

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/render/installconfig"
)

// routed reports whether routers know the VIPs that have no other announcement of their own, the
// first API VIPs among them.
func (r *resolver) routed() bool { return r.in.VIP.Spec.Announce.Routed() }

// announceOf returns how VIPs with a value of their own, or "", are announced.
func (r *resolver) announceOf(own v1alpha1.Announce) v1alpha1.Announce {
	return cmp.Or(own, r.in.VIP.Spec.Announce, v1alpha1.AnnounceVRRP)
}

// elected reports whether keepalived elects the holders of the VIPs of a group.
func (r *resolver) elected(g groupPlan) bool { return !r.announceOf(g.Announce).Routed() }

// announceOfIngress returns the value of the default ingress controller's VIPs, or "".
func (r *resolver) announceOfIngress() v1alpha1.Announce {
	for _, g := range r.in.VIP.Spec.Ingress {
		if g.Name == v1alpha1.DefaultIngress {
			return g.Announce
		}
	}
	return ""
}

// acceptBGP uses the routers of the install-config's bgpVIPConfig, where the VIPConfig has none.
func (in *Input) acceptBGP() {
	s := &in.VIP.Spec
	if s.RoutedBy() == v1alpha1.AnnounceBGP && len(s.BGP.Peers) == 0 && in.Install != nil && in.Install.BGP != nil {
		communities := s.BGP.Communities
		s.BGP = in.Install.BGP.BGP
		s.BGP.Peers = slices.Clone(s.BGP.Peers)
		in.bgpTaken = true
		if len(communities) > 0 {
			s.BGP.Communities = communities
		}
	}
}

// checkAnnounce checks that routers can know the VIPs.
func (r *resolver) checkAnnounce() {
	r.checkBGPConfig()
	if r.in.VIP.Spec.RoutedBy() == "" || r.withoutVIPs() {
		return
	}
	if r.routed() && r.operatorsKeepalived() && r.in.Install.BGP == nil {
		r.report(problem.Warning, r.in.vipDocs, problem.Problem{Code: problem.ConflictingFields, Field: "spec.announce", Found: string(r.in.VIP.Spec.Announce),
			Expected: fmt.Sprintf("a running cluster, or platform.%s.loadBalancer.type: UserManaged in the install-config", r.in.Install.Platform),
			Hint:     "OpenShift's own keepalived holds the API VIP on the bootstrap host otherwise, where no router would find it"})
	}
	all := slices.Concat(r.vipLists()...)
	vips := lists.Filter(all, func(v place) bool { return v.routed })
	for _, v := range vips {
		for _, n := range r.in.Install.MachineNetworks {
			if n.Contains(v.Addr) {
				r.report(problem.Error, v.docs, problem.Problem{Code: problem.ConflictingFields, Field: v.field, Found: v.String(),
					Expected: "an address outside of " + n.String(),
					Hint:     "hosts on a subnet look for its addresses on the subnet and not behind a router; spec.announce: vrrp is for VIPs there"})
			}
		}
	}
	if r.in.VIP.Spec.RoutedBy() == v1alpha1.AnnounceBGP {
		r.checkPeers(vips, all)
	}
}

// checkPeers checks that routers learn of the VIPs.
func (r *resolver) checkPeers(vips, all []place) {
	b := &r.in.VIP.Spec.BGP
	for _, v := range vips {
		if !slices.ContainsFunc(b.Peers, func(p v1alpha1.BGPPeer) bool { return p.Carries(v.Addr) }) {
			hint := "a session carries the VIPs of its own address family"
			if v.Is4() {
				hint += ", and over IPv6 those of IPv4 with extendedNextHop: true"
			}
			r.report(problem.Error, v.docs, problem.Problem{Code: problem.MissingField, Field: v.field, Found: v.String(),
				Expected: "a router with an " + installconfig.Family(v.Addr) + " address in spec.bgp.peers",
				Hint:     hint})
			return
		}
	}
	for i, p := range b.Peers {
		if p.Interface != "" {
			continue
		}
		field := fmt.Sprintf("spec.bgp.peers[%d].address", i)
		if slices.ContainsFunc(all, func(v place) bool { return v.Addr == p.Address }) || r.hostWith(p.Address) != "" {
			r.errorAt(r.in.vipDocs, problem.VIPTaken, field, p.Address.String(), "the address of a router, this is a VIP or the address of a host")
		}
	}
	for _, h := range r.hosts() {
		addresses := lists.Map(h.Addresses, func(a installconfig.Prefix) netip.Addr { return a.Addr() })
		if h.Name != "" && len(b.PeersOf(h.Name, addresses)) == 0 && h.Role != v1alpha1.RoleWorker {
			r.report(problem.Warning, r.in.vipDocs, problem.Problem{Code: problem.MissingField, Field: "spec.bgp.peers",
				Found: "no router for " + h.Name, Expected: "one whose nodes select it: it announces no VIP"})
		}
	}
}

// checkBGPConfig checks the install-config's bgpVIPConfig against spec.announce.
func (r *resolver) checkBGPConfig() {
	bgp := r.in.Install.BGP
	if bgp == nil {
		return
	}
	const field = "platform.baremetal.bgpVIPConfig"
	docs := layer(r.in.Install.Doc)
	if !r.routed() {
		r.report(problem.Error, docs, problem.Problem{Code: problem.ConflictingFields, Field: field, Found: "VIPs that OpenShift announces by BGP (kube-vip)",
			Expected: "spec.announce: bgp in vipgen.yaml, or no bgpVIPConfig: keepalived would hold the same VIPs, and each would have two owners",
			Hint:     "a cluster that keeps OpenShift's kube-vip needs nothing from vipgen"})
		return
	}
	r.report(problem.Warning, docs, problem.Problem{Code: problem.ConflictingFields, Field: field, Found: "OpenShift's preview of VIPs by BGP",
		Expected: "the feature gate BGPBasedVIPManagement off on nodes with vipgen's pods",
		Hint:     "its kube-vip and FRR would announce the VIPs from the same nodes, without vipgen's checks"})
	if !r.in.bgpTaken {
		return
	}
	for _, s := range bgp.Secrets {
		r.report(problem.Warning, docs, problem.Problem{Code: problem.MissingField, Field: s.Field, Found: "a password, which vipgen does not read", Expected: "the same in the file " + s.File + " on the nodes, mode 0600",
			Hint: "vipgen writes no secret to its output: bring the file to the nodes by a MachineConfig of your own or by hand"})
	}
}
