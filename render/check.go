package render

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/render/installconfig"
)

func (r *resolver) report(s problem.Severity, docs layers, p problem.Problem) {
	p.Severity = s
	r.list = append(r.list, docs.locate(p))
}

func (r *resolver) errorAt(docs layers, code problem.Code, field, found, expected string) {
	r.report(problem.Error, docs, problem.Problem{Code: code, Field: field, Found: found, Expected: expected})
}

func (r *resolver) checkVersion(o Options) {
	known := ignition.SupportedOpenShift()
	v := r.version
	if v != "" && !slices.Contains(known, v) {
		p := problem.Problem{Code: problem.UnsupportedVersion, Found: problem.Quote(v), Expected: known[0] + " to " + known[len(known)-1] + ", without a patch level"}
		docs := r.in.vipDocs
		switch {
		case o.OpenShiftVersion != "":
			docs, p.Field = layers{}, "--openshift-version"
		case r.in.VIP.Spec.OpenShiftVersion != "":
			p.Field = "spec.openshiftVersion"
		default:
			docs, p.Field = layers{}, "--release-info"
		}
		r.report(problem.Error, docs, p)
		return
	}
	if r.in.VIP.Spec.Manifests.NodeDisruptionPolicy && !assets.AtLeast(v, "4.17") {
		r.errorAt(r.in.vipDocs, problem.NeedsVersion, "spec.manifests.nodeDisruptionPolicy", cmp.Or(v, "no version"),
			"openshiftVersion 4.17 or later, the first with node disruption policies")
	}
	if r.in.Install.LoadBalancer == "UserManaged" && v != "" && !assets.AtLeast(v, "4.13") {
		r.errorAt(layer(r.in.Install.Doc), problem.NeedsVersion, "platform."+r.in.Install.Platform+".loadBalancer.type", "UserManaged with OpenShift "+v,
			"OpenShift 4.13 or later: before, its own keepalived holds the VIPs whatever is said here, so leave it out")
	}
	if r.in.Install.Platform == "ovirt" && assets.AtLeast(v, "4.14") {
		r.report(problem.Warning, layer(r.in.Install.Doc), problem.Problem{Code: problem.NeedsVersion, Field: "platform.ovirt",
			Found: "OpenShift " + v, Expected: "OpenShift 4.13 or earlier, the last that can be installed on oVirt"})
	}
}

func (r *resolver) checkTopology() {
	i := r.in.Install
	n := i.ControlPlane.Replicas
	bad := func(field, found, expected string) {
		r.errorAt(layer(i.Doc), problem.Topology, field, found, expected)
	}
	switch {
	case n < 1:
		bad("controlPlane.replicas", fmt.Sprint(n), "1, 3 or more, or 2 with an arbiter or with fencing")
	case n == 2 && i.Arbiter == nil && !i.Fencing:
		bad("controlPlane.replicas", "2", "1, 3 or more, or 2 with an arbiter or with fencing: two nodes alone cannot tell which of them is right")
	}
	if i.Arbiter != nil {
		if n != 2 {
			bad("arbiter", fmt.Sprintf("an arbiter beside %d control-plane nodes", n), "controlPlane.replicas: 2")
		}
		if i.Arbiter.Replicas != 1 {
			bad("arbiter.replicas", fmt.Sprint(i.Arbiter.Replicas), "1")
		}
		if i.Fencing {
			bad("arbiter", "an arbiter and fencing", "one of them")
		}
	}
}

// checkVIPs checks VIPs against the networks and hosts of the input.
func (r *resolver) checkVIPs() {
	if r.withoutVIPs() {
		r.checkNoVIPs()
		r.checkNames()
		return
	}
	if !r.checkPresence() {
		return
	}
	all := r.vipLists()
	for _, list := range all {
		r.checkFamilies(list)
	}
	// The installer allows routes with other families than the API.
	if a, b := familyNames(addresses(r.api)), familyNames(addresses(r.ingress)); a != b {
		r.report(problem.Warning, r.ingress[0].docs, problem.Problem{Code: problem.FamilyOrder, Field: r.ingress[0].field, Found: b, Expected: a + ", as the API VIPs",
			Hint: "clients reach routes by " + b + " then, and the API by " + a})
	}
	seen := map[netip.Addr]place{}
	vips := slices.Concat(all...)
	for _, v := range vips {
		r.checkNetwork(v)
		if by := r.hostWith(v.Addr); by != "" {
			r.errorAt(v.docs, problem.VIPTaken, v.field, v.String(), "an address of its own, this is the one of "+by)
		}
		// The installer allows one address for both API and ingress with a load balancer outside of the cluster.
		if first, twice := seen[v.Addr]; twice && !(r.external() && r.apiAndIngress(first, v)) {
			r.report(problem.Error, v.docs, problem.Problem{Code: problem.VIPTaken, Field: v.field, Found: v.String(),
				Expected: "an address of its own, this is the one of " + first.at(), Hint: r.sharingHint(first, v)})
		} else {
			seen[v.Addr] = v
		}
	}
	r.checkOutside(vips)
	r.checkNames()
}

func (r *resolver) vipLists() [][]place {
	out := [][]place{r.api, r.ingress}
	if r.dns != nil {
		out = append(out, []place{*r.dns})
	}
	for i, g := range r.in.VIP.Spec.Ingress {
		out = append(out, r.announced(places(r.in.vipDocs, fmt.Sprintf("spec.ingress[%d].vips", i), g.VIPs), g.Announce))
	}
	for i, g := range r.in.VIP.Spec.AdditionalAPIVIPs {
		out = append(out, r.announced(places(r.in.vipDocs, fmt.Sprintf("spec.additionalAPIVIPs[%d].vips", i), g.VIPs), g.Announce))
	}
	return out
}

func places(docs layers, field string, list []netip.Addr) []place {
	var out []place
	for i, a := range list {
		out = append(out, place{Addr: a, docs: docs, field: fmt.Sprintf("%s[%d]", field, i)})
	}
	return out
}

func (r *resolver) checkPresence() bool {
	if len(r.api) > 0 && len(r.ingress) > 0 {
		return true
	}
	i := r.in.Install
	hint := fmt.Sprintf("give platform.%s.apiVIPs and ingressVIPs", i.Platform)
	if i.Platform == "ovirt" {
		hint = "give platform.ovirt.api_vips and ingress_vips"
	}
	if !assets.PlatformNamed(i.Platform).HasVIPs() {
		hint = fmt.Sprintf("platform %s has no field for VIPs: give spec.apiVIPs and spec.ingressVIPs in vipgen.yaml, see 'vipgen schema'; "+
			"a cluster behind an external load balancer, or a single node without VIPs, needs nothing from vipgen", i.Platform)
	}
	if i.ControlPlane.Replicas == 1 {
		hint += "; spec.loadBalancer.type: None in vipgen.yaml gives a single node without VIPs its DNS"
	}
	if len(r.api)+len(r.ingress) == 0 && (i.Platform == "vsphere" || i.Platform == "nutanix") {
		// User-provisioned infrastructure: the installer does not need them there.
		hint += "; a cluster behind an external load balancer needs nothing from vipgen"
	}
	missing := "VIPs"
	switch {
	case len(r.api) > 0:
		missing = "ingress VIP"
	case len(r.ingress) > 0:
		missing = "API VIP"
	}
	r.report(problem.Error, layer(i.Doc), problem.Problem{Code: problem.NoVIPs, Field: "platform." + i.Platform,
		Found: "no " + missing, Expected: "an API and an ingress VIP per address family", Hint: hint})
	return false
}

func (r *resolver) apiAndIngress(a, b place) bool {
	return slices.Contains(r.api, a) && slices.Contains(r.ingress, b)
}

func (r *resolver) sharingHint(a, b place) string {
	if r.apiAndIngress(a, b) {
		return "nodes elect the holders of API and ingress apart, so two of them would have the address; if a load balancer outside of the cluster has it, set spec.loadBalancer.type: External in vipgen.yaml"
	}
	return ""
}

// withoutVIPs reports whether the cluster has type None.
func (r *resolver) withoutVIPs() bool {
	return r.in.VIP.Spec.LoadBalancer.Type == v1alpha1.LoadBalancerNone
}

// checkNoVIPs reports VIPs of a cluster that has no holder for them.
func (r *resolver) checkNoVIPs() {
	if i := r.in.Install; r.in.assumedNone && i.Platform != "" {
		hint := "its names are its own address; with VIPs, give spec.apiVIPs and spec.ingressVIPs there"
		if r.in.Manifests != nil {
			hint += "; the assisted installer may give the node a dnsmasq for the same names: keep one of the two"
		}
		r.report(problem.Warning, layer(i.Doc), problem.Problem{Code: problem.NoVIPs, Field: "platform." + i.Platform, Found: "no VIPs",
			Expected: "spec.loadBalancer.type: None in vipgen.yaml, as vipgen assumes for a single node", Hint: hint})
	}
	for _, v := range slices.Concat(r.vipLists()...) {
		r.report(problem.Error, v.docs, problem.Problem{Code: problem.ConflictingFields, Field: v.field, Found: v.String(),
			Expected: "no VIP with spec.loadBalancer.type: None", Hint: "InCluster where the nodes hold it, External where something outside of the cluster does"})
	}
}

func (r *resolver) external() bool {
	return r.in.VIP.Spec.LoadBalancer.Type == v1alpha1.LoadBalancerExternal
}

// checkFamilies requires the order of families of the machine networks, whose first is the
// cluster's primary one.
func (r *resolver) checkFamilies(list []place) {
	if len(list) != 2 || len(r.in.Install.MachineNetworks) == 0 {
		return
	}
	primary := r.in.Install.MachineNetworks[0].Prefix.Addr()
	if list[0].Is4() != primary.Is4() {
		r.errorAt(list[0].docs, problem.FamilyOrder, list[0].field, installconfig.Family(list[0].Addr)+" first",
			installconfig.Family(primary)+" first, as in networking.machineNetwork")
	}
}

func familyNames(list []netip.Addr) string {
	out := lists.Map(list, installconfig.Family)
	slices.Sort(out)
	return strings.Join(slices.Compact(out), " and ")
}

// checkNetwork reports a VIP that the cluster uses inside, or that no host can have.
func (r *resolver) checkNetwork(v place) {
	i := r.in.Install
	for _, n := range i.MachineNetworks {
		if n.Prefix.Contains(v.Addr) && v1alpha1.IsEdge(n.Prefix, v.Addr) {
			r.errorAt(v.docs, problem.BadAddress, v.field, v.String(), "an address of a host, this is the network or broadcast address of "+n.Prefix.String())
		}
	}
	// A network that overlaps the machine network of the VIP is reported already.
	if slices.ContainsFunc(i.MachineNetworks, func(m installconfig.Network) bool { return m.Contains(v.Addr) }) {
		return
	}
	for _, n := range slices.Concat(i.ClusterNetworks, i.ServiceNetworks) {
		if n.Prefix.Contains(v.Addr) {
			r.errorAt(v.docs, problem.VIPTaken, v.field, v.String(), "an address outside of "+n.Prefix.String()+", which the cluster uses inside")
		}
	}
}

func (r *resolver) hostWith(addr netip.Addr) string {
	for _, h := range r.hosts() {
		for _, a := range h.Addresses {
			if a.Addr() == addr {
				return cmp.Or(h.Name, h.Field)
			}
		}
	}
	if a := r.bootstrapAddress(); a != nil && a.Addr == addr {
		return "the bootstrap host"
	}
	return ""
}

// defaultRoutes names the default ingress controller's names in reports.
const defaultRoutes = "the default ingress controller"

// checkNames reports names that would resolve to two groups.
func (r *resolver) checkNames() {
	domain := r.domain()
	taken := map[string]string{"api." + domain: "the API", "api-int." + domain: "the API", "*.apps." + domain: defaultRoutes}
	claimAt := func(docs layers, name, by, field string) {
		if first, ok := taken[name]; ok {
			r.errorAt(docs, problem.ConflictingFields, field, fmt.Sprintf("%q", name), "a name of its own, this is the one of "+first)
		}
		taken[name] = by
		if below, wild := strings.CutPrefix(name, "*."); wild && (domain == below || strings.HasSuffix(domain, "."+below)) {
			r.errorAt(docs, problem.ConflictingFields, field, fmt.Sprintf("%q", name), "a domain that does not hold the names of the cluster's own nodes")
		}
	}
	claim := func(name, by, field string) { claimAt(r.in.vipDocs, name, by, field) }
	for i, g := range r.in.VIP.Spec.Ingress {
		for j, d := range g.Domains {
			claim("*."+d, "ingress controller "+g.Name, fmt.Sprintf("spec.ingress[%d].domains[%d]", i, j))
		}
	}
	for _, d := range r.routeDomains() {
		if !r.served(d.name) && taken["*."+d.name] != defaultRoutes {
			claimAt(d.docs, "*."+d.name, defaultRoutes, d.field)
		}
	}
	for i, g := range r.in.VIP.Spec.AdditionalAPIVIPs {
		at := fmt.Sprintf("spec.additionalAPIVIPs[%d]", i)
		for j, name := range apiNames(&g, domain) {
			field := fmt.Sprintf("%s.names[%d]", at, j)
			if len(g.Names) == 0 {
				field = at + ".name" // the field that the name is made of
			}
			claim(name, "API VIPs "+g.Name, field)
		}
	}
	for i, rec := range r.in.VIP.Spec.DNS.Records {
		claim(rec.Name, "another record", fmt.Sprintf("spec.dns.records[%d].name", i))
	}
}

// checkLoadBalancer reports settings that leave the holder of the VIPs open.
func (r *resolver) checkLoadBalancer() {
	vip := &r.in.VIP.Spec
	if r.external() {
		return
	}
	r.checkRendezvous()
	if r.routed() {
		return
	}
	ids := vip.VRRP.VirtualRouterIDs
	if r.besideOperators() && ids.API != 0 && ids.API != v1alpha1.RouterIDs(r.in.Install.Name).API {
		r.errorAt(r.in.vipDocs, problem.ConflictingFields, "spec.vrrp.virtualRouterIDs.api", fmt.Sprint(ids.API),
			fmt.Sprintf("%d, which OpenShift's own keepalived has on the bootstrap host, or platform.%s.loadBalancer.type: UserManaged", v1alpha1.RouterIDs(r.in.Install.Name).API, r.in.Install.Platform))
	}
	if want := vip.VRRP.Interoperable; want != nil && !*want && r.operatorsKeepalived() {
		r.report(problem.Warning, r.in.vipDocs, problem.Problem{Code: problem.ConflictingFields, Field: "spec.vrrp.interoperable",
			Found: "false", Expected: "true where OpenShift's own keepalived runs on the bootstrap host: both sides will hold the API VIP until it is gone"})
	}
}
