package externallb

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/render/installconfig"
	"github.com/vipgen/vipgen/render/source"
)

func (r *resolver) options() {
	for _, s := range r.x.Serve {
		if !slices.Contains(Serves(), s) {
			r.Add(problem.BadValue, "--serve", problem.Quote(s), strings.Join(Serves(), ", "), "")
		}
	}
	for flag, list := range map[string][]netip.Addr{"--api-vip": r.x.APIVIPs, "--ingress-vip": r.x.IngressVIPs} {
		r.perFamily(flag, list)
	}
	for _, n := range r.x.Allow {
		switch {
		case n != n.Masked() || n.Addr().Is4In6() || n.Addr().Zone() != "":
			r.Add(problem.BadNetwork, "--allow", n.String(), "a network in CIDR notation, such as 192.0.2.0/24", "")
		case n.Bits() == 0:
			r.Add(problem.BadNetwork, "--allow", n.String(), "networks of the cluster's hosts", "machine configs hold secrets, and this is every host")
		}
	}
	names := map[string]bool{}
	for _, n := range r.x.Nodes {
		r.node(n, names)
	}
	r.balancers(names)
	if r.x.RouterID < 0 || r.x.RouterID > 255 {
		r.Add(problem.BadValue, "--virtual-router-id", fmt.Sprint(r.x.RouterID), "1 to 255", "")
	}
}

// perFamily checks a list with at most one address of each family.
func (r *resolver) perFamily(flag string, list []netip.Addr) {
	for i, a := range list {
		if why := v1alpha1.UsableAddress(a); why != "" {
			r.Add(problem.BadAddress, flag, problem.Quote(a.String())+", "+why, "the unicast address of a host", "")
		}
		if slices.ContainsFunc(list[:i], func(b netip.Addr) bool { return a.Is4() == b.Is4() }) {
			r.Add(problem.BadValue, flag, a.String(), "at most one IPv4 and one IPv6 address", "")
		}
	}
}

func (r *resolver) node(n v1alpha1.Peer, names map[string]bool) {
	if !v1alpha1.ValidName(n.Name) {
		r.Add(problem.BadName, "--node", problem.Quote(n.Name), "a DNS name of lower-case letters, digits, hyphens and dots", "")
	}
	if names[n.Name] {
		r.Add(problem.BadName, "--node", problem.Quote(n.Name), "each node once, with all its addresses", "")
	}
	names[n.Name] = true
	if n.Role != "" && !v1alpha1.ValidLabel(n.Role) {
		r.Add(problem.BadName, "--node", problem.Quote(n.Role), "a pool: bootstrap, master, worker, arbiter or a custom one", "")
	}
	for _, a := range n.Addresses {
		if why := v1alpha1.UsableAddress(a); why != "" {
			r.Add(problem.BadAddress, "--node", problem.Quote(a.String())+", "+why, "the unicast address of "+problem.Quote(n.Name), "")
		}
	}
}

// balancers checks the hosts of a pair by themselves.
func (r *resolver) balancers(names map[string]bool) {
	if n := len(r.x.Balancers); n != 0 && n != 2 {
		r.Add(problem.BadValue, "--balancer", fmt.Sprintf("%d of them", n), "two, or none where something else holds the load balancer's addresses", "")
	}
	if len(r.x.Balancers) > 0 && !v1alpha1.ValidInterface(r.x.Interface) {
		found := "nothing"
		if r.x.Interface != "" {
			found = problem.Quote(r.x.Interface)
		}
		r.Add(problem.BadName, "--interface", found, "the name of the balancers' interface, such as ens192", "")
	}
	for _, b := range r.x.Balancers {
		if !v1alpha1.ValidName(b.Name) {
			r.Add(problem.BadName, "--balancer", problem.Quote(b.Name), "a DNS name of lower-case letters, digits, hyphens and dots", "")
		}
		if names[b.Name] {
			r.Add(problem.BadName, "--balancer", problem.Quote(b.Name), "a name of its own", "")
		}
		names[b.Name] = true
		list := lists.Map(b.Addresses, func(p netip.Prefix) netip.Addr { return p.Addr() })
		r.perFamily("--balancer", list)
	}
}

// fieldOf returns the source field of a load balancer's address.
func (r *resolver) fieldOf(vip netip.Addr) string {
	if slices.Contains(r.x.APIVIPs, vip) {
		return "--api-vip"
	}
	if slices.Contains(r.x.IngressVIPs, vip) {
		return "--ingress-vip"
	}
	for _, a := range slices.Concat(r.in.Install.APIVIPs, r.in.Install.IngressVIPs) {
		if a.Addr == vip {
			return a.Field
		}
	}
	if i := slices.Index(r.in.VIP.Spec.APIVIPs, vip); i >= 0 {
		return fmt.Sprintf("spec.apiVIPs[%d]", i)
	}
	if i := slices.Index(r.in.VIP.Spec.IngressVIPs, vip); i >= 0 {
		return fmt.Sprintf("spec.ingressVIPs[%d]", i)
	}
	for i, g := range r.in.VIP.Spec.Ingress {
		if j := slices.Index(g.VIPs, vip); j >= 0 {
			return fmt.Sprintf("spec.ingress[%d].vips[%d]", i, j)
		}
	}
	for i, g := range r.in.VIP.Spec.AdditionalAPIVIPs {
		if j := slices.Index(g.VIPs, vip); j >= 0 {
			return fmt.Sprintf("spec.additionalAPIVIPs[%d].vips[%d]", i, j)
		}
	}
	return "spec"
}

// checkVIPs reports addresses of the load balancer that others have.
func (r *resolver) checkVIPs(external bool) {
	if !external {
		for _, g := range r.c.Config.Spec.Groups {
			for _, vip := range g.VIPs {
				if slices.Contains(r.allVIPs(), vip) {
					r.Add(problem.VIPTaken, r.fieldOf(vip), vip.String(), "an address that the cluster's nodes do not hold",
						"otherwise both hold it; spec.loadBalancer.type: External in vipgen.yaml declares that they no longer do")
				}
			}
		}
	}
	for _, g := range r.groups {
		for _, vip := range g.vips {
			for _, other := range r.groups {
				// API and default ingress use different ports, so they may share an address.
				if other.Role == g.Role && other.Name < g.Name && slices.Contains(other.vips, vip) {
					r.Add(problem.VIPTaken, r.fieldOf(vip), vip.String(), "an address of its own, this is the one of group "+other.Name, "")
				}
			}
		}
	}
}

// checkNodes requires backends for every service, with distinct addresses.
func (r *resolver) checkNodes() {
	control := 0
	for _, p := range r.peers {
		if p.Role == v1alpha1.RoleMaster {
			control++
		}
	}
	needsControl := r.x.serves(serveAPI) || r.x.serves(serveMachineConfig)
	want := r.c.Config.Spec.ControlPlane.Replicas
	const hint = "give each as --node NAME:ROLE=ADDRESS, or its static address in agent-config.yaml"
	switch {
	case needsControl && control == 0:
		r.Add(problem.MissingField, "--node", "no control-plane node with a known address", fmt.Sprintf("the %d of controlPlane.replicas", want), hint)
	case needsControl && control < want:
		r.Problem(problem.Problem{Severity: problem.Warning, Code: problem.Topology, Field: "controlPlane.replicas",
			Found: fmt.Sprintf("%d control-plane nodes, the addresses of %d are known", want, control), Expected: "all addresses", Hint: hint})
	}
	for _, g := range r.groups {
		if g.Role == v1alpha1.GroupIngress && len(r.behind(g.Group)) == 0 {
			r.Add(problem.MissingField, "--node", "no node with a known address that can run routers of ingress controller "+problem.Quote(g.Controller), "at least one", hint)
		}
	}
	r.leftOut()
	r.checkAddresses()
}

// leftOut warns of hosts of the files that are in no machine network and so get no traffic:
// their addresses may be those of a network for storage.
func (r *resolver) leftOut() {
	r.eachHost(func(h installconfig.Host, doc *source.Document) {
		own := func(a netip.Addr) bool {
			return slices.ContainsFunc(h.Addresses, func(x installconfig.Prefix) bool { return x.Addr() == a })
		}
		known := slices.ContainsFunc(r.peers, func(p v1alpha1.Peer) bool {
			return p.Name == h.Name || slices.ContainsFunc(p.Addresses, own)
		})
		if known || len(h.Addresses) == 0 || h.Role == v1alpha1.RoleBootstrap {
			return
		}
		a := h.Addresses[0]
		name := cmp.Or(h.Name, "NAME")
		r.List = append(r.List, doc.Locate(problem.List{{Severity: problem.Warning, Code: problem.BadNetwork, Field: a.Field,
			Found: a.Addr().String() + ", in no machine network", Expected: "an address that the load balancer can send to",
			Hint: fmt.Sprintf("nothing is sent to this host, unless it is given as --node %s:%s=ADDRESS", name, cmp.Or(h.Role, "ROLE"))}})...)
	})
}

func (r *resolver) eachHost(do func(h installconfig.Host, doc *source.Document)) {
	for _, h := range r.in.Install.Hosts {
		do(h, r.in.Install.Doc)
	}
	if r.in.Agent != nil {
		for _, h := range r.in.Agent.Hosts {
			do(h, r.in.Agent.Doc)
		}
	}
}

func (r *resolver) checkAddresses() {
	taken := map[netip.Addr]string{}
	for _, p := range r.peers {
		for _, a := range p.Addresses {
			if by, ok := taken[a]; ok {
				r.List = append(r.List, r.atHost(p.Name, a, problem.Problem{Severity: problem.Error, Code: problem.BadAddress,
					Found: a.String() + " of " + p.Name, Expected: "an address of its own, this is the one of " + by}))
			}
			taken[a] = p.Name
		}
	}
	for _, vip := range r.allVIPs() {
		if by := taken[vip]; by != "" {
			r.Add(problem.VIPTaken, r.fieldOf(vip), vip.String(), "an address of its own, this is the one of "+by, "")
		}
	}
	for _, b := range r.x.Balancers {
		for _, p := range b.Addresses {
			if by := taken[p.Addr()]; by != "" {
				r.Add(problem.BadAddress, "--balancer", p.Addr().String()+" of "+b.Name, "an address of its own, this is the one of "+by, "")
			}
			taken[p.Addr()] = b.Name
			if slices.Contains(r.allVIPs(), p.Addr()) {
				r.Add(problem.VIPTaken, r.fieldOf(p.Addr()), p.Addr().String(), "an address that moves between the hosts, this is the own one of "+b.Name, "")
			}
		}
	}
}

// atHost fills in the source of a node's address: the last one, where two hosts have it.
func (r *resolver) atHost(name string, a netip.Addr, p problem.Problem) problem.Problem {
	p.Field = "--node"
	if slices.ContainsFunc(r.x.Nodes, func(n v1alpha1.Peer) bool { return n.Name == name }) {
		return p
	}
	r.eachHost(func(h installconfig.Host, doc *source.Document) {
		for _, x := range h.Addresses {
			if h.Name == name && x.Addr() == a {
				p.Field = x.Field
				p = doc.Locate(problem.List{p})[0]
			}
		}
	})
	return p
}

// networks checks that every known node can read its machine config.
func (r *resolver) networks() {
	if !r.x.serves(serveMachineConfig) {
		return
	}
	allowed := r.clusterHosts()
	for _, p := range r.peers {
		if len(p.Addresses) == 0 {
			continue
		}
		a := r.address(p)
		if !slices.ContainsFunc(allowed, func(n netip.Prefix) bool { return n.Contains(a) }) {
			r.Add(problem.BadNetwork, "networking.machineNetwork", fmt.Sprintf("%s at %s outside of it", p.Name, a),
				"networks of all hosts of the cluster", "others get no machine config: add a network, or give it as --allow")
		}
	}
}

func (r *resolver) pair() {
	if len(r.x.Balancers) != 2 {
		return
	}
	if len(r.allVIPs()) == 0 {
		r.Add(problem.NoVIPs, "--api-vip", "nothing for the pair to hold", "the load balancer's own addresses, as --api-vip and --ingress-vip",
			"those of the files are held by the cluster's nodes, unless vipgen.yaml has spec.loadBalancer.type: External")
	}
	for _, vip := range r.allVIPs() {
		for _, b := range r.x.Balancers {
			in := slices.ContainsFunc(b.Addresses, func(p netip.Prefix) bool { return p.Contains(vip) })
			if !in {
				r.Add(problem.VIPOutsideNetwork, r.fieldOf(vip), vip.String(), "an address in a network of "+b.Name+", which is to hold it", "")
			}
		}
	}
	if r.List.Err() != nil {
		return
	}
	id := r.routerID()
	for i, b := range r.x.Balancers {
		r.hosts = append(r.hosts, Host{Name: b.Name, Interface: r.x.Interface, Addresses: b.Addresses, RouterID: id,
			keepalived: r.keepalived(b, r.x.Balancers[1-i], id)})
	}
}

// routerID returns the user's ID, else the derived one or the next that neither the cluster's
// nodes nor others on the network have, nor nodes would have if they held the VIPs: so it stays
// when a cluster moves.
func (r *resolver) routerID() int {
	taken := map[int]string{}
	for _, id := range r.in.VIP.Spec.VRRP.ReservedRouterIDs {
		taken[id] = "spec.vrrp.reservedRouterIDs"
	}
	for _, g := range r.c.Config.Spec.Groups {
		if g.VirtualRouterID != 0 {
			taken[g.VirtualRouterID] = "group " + g.Name + " on the cluster's nodes"
		}
	}
	if id := r.x.RouterID; id != 0 {
		if by := taken[id]; by != "" {
			r.Add(problem.RouterIDTaken, "--virtual-router-id", fmt.Sprint(id), "an ID that is not the one of "+by, "")
		}
		return id
	}
	name, own := r.c.Config.Metadata.Name, r.in.VIP.Spec.VRRP.VirtualRouterIDs
	derived := v1alpha1.RouterIDs(name)
	for _, id := range []int{own.API, own.Ingress, own.DNS, derived.API, derived.Ingress, derived.DNS} {
		taken[id] = "a group"
	}
	for _, g := range r.in.VIP.Spec.Ingress {
		taken[cmp.Or(g.VirtualRouterID, v1alpha1.RouterID(name+"-ingress-"+g.Name))] = "a group"
	}
	for _, g := range r.in.VIP.Spec.AdditionalAPIVIPs {
		taken[cmp.Or(g.VirtualRouterID, v1alpha1.RouterID(name+"-"+v1alpha1.FirstAPI+"-"+g.Name))] = "a group"
	}
	id := v1alpha1.RouterID(name + "-lb")
	for range 255 {
		if taken[id] == "" {
			return id
		}
		id = id%255 + 1
	}
	r.Add(problem.RouterIDTaken, "spec.vrrp.reservedRouterIDs", "no virtual router ID left for the pair", "one that is not reserved",
		"reserve those alone that others on the network have")
	return 0
}
