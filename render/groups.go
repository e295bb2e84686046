package render

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/render/installconfig"
)

// place is an address with its source field, also where the installer chose it.
type place struct {
	netip.Addr
	docs     layers
	field    string
	computed bool
	routed   bool // known to routers, instead of on a subnet of the nodes
}

// String returns the address, and the origin of one that the file does not have.
func (p place) String() string {
	if p.computed {
		return p.Addr.String() + ", the installer's default"
	}
	return p.Addr.String()
}

// at returns the field, also where the file does not have it.
func (p place) at() string {
	if p.computed {
		return p.field + ", which has the installer's default"
	}
	return p.field
}

func placesOf(docs layers, list []installconfig.Address) []place {
	return lists.Map(list, func(a installconfig.Address) place {
		return place{Addr: a.Addr, docs: docs, field: a.Field, computed: a.Default}
	})
}

func (r *resolver) collectVIPs() {
	install, vip := r.in.Install, &r.in.VIP.Spec
	r.api = placesOf(layer(install.Doc), install.APIVIPs)
	r.ingress = placesOf(layer(install.Doc), install.IngressVIPs)
	if install.DNSVIP != nil {
		r.dns = &placesOf(layer(install.Doc), []installconfig.Address{*install.DNSVIP})[0]
	}
	r.api = r.orConfigured(r.api, "spec.apiVIPs", vip.APIVIPs)
	r.ingress = r.orConfigured(r.ingress, "spec.ingressVIPs", vip.IngressVIPs)
	r.announced(r.api, "")
	r.announced(r.ingress, r.announceOfIngress())
	if r.dns != nil {
		r.dns.routed = r.routed()
	}
}

// announced returns VIPs that have this value of their own, or "", with whether routers know them.
func (r *resolver) announced(list []place, own v1alpha1.Announce) []place {
	for i := range list {
		list[i].routed = r.announceOf(own).Routed()
	}
	return list
}

// orConfigured returns the install-config's VIPs, or the VIPConfig's where it has none. Both are a
// conflict.
func (r *resolver) orConfigured(have []place, field string, list []netip.Addr) []place {
	if len(list) == 0 {
		return have
	}
	if len(have) > 0 {
		why := "the install-config has " + have[0].field
		if have[0].computed {
			why = fmt.Sprintf("%s in the install-config sets them: %s", have[0].field, have[0])
		}
		r.errorAt(r.in.vipDocs, problem.ConflictingFields, field, fmt.Sprint(list), "none: "+why)
		return have
	}
	return places(r.in.vipDocs, field, list)
}

// groupPlan is a group with its wanted and derived virtual router ID.
type groupPlan struct {
	v1alpha1.Group
	// own is the user's name of the group, part of the names of its VRRP instances; empty for
	// the groups that every cluster has.
	own string
	// derived is the default ID; wanted is the user's, 0 for none, from field.
	derived, wanted int
	field           string
}

// groups returns the VRRP groups: API, DNS of old clusters, ingress controllers, more API VIPs.
func (r *resolver) groups(domain string) []groupPlan {
	if r.withoutVIPs() {
		// The names of a single node resolve to its own address, which the node finds.
		if r.in.Install.ControlPlane.Replicas == 1 {
			return []groupPlan{r.firstAPIGroup(), r.defaultIngress(domain)}
		}
		return nil
	}
	groups := []groupPlan{r.firstAPIGroup()}
	if r.dns != nil {
		groups = append(groups, r.dnsGroup())
	}
	groups = append(groups, r.defaultIngress(domain))
	for i, g := range r.in.VIP.Spec.Ingress {
		if g.Name != v1alpha1.DefaultIngress {
			groups = append(groups, r.ingressGroup(i, &g))
		}
	}
	for i, g := range r.in.VIP.Spec.AdditionalAPIVIPs {
		groups = append(groups, r.additionalAPIGroup(i, &g, domain))
	}
	for i := range groups {
		if g := &groups[i]; r.announceOf(g.Announce) == r.announceOf("") {
			g.Announce = ""
		}
	}
	if r.in.VIP.Spec.LoadBalancer.Type == v1alpha1.LoadBalancerInCluster {
		r.addVRRP(groups)
	}
	return groups
}

const routerIDFields = "spec.vrrp.virtualRouterIDs."

func (r *resolver) firstAPIGroup() groupPlan {
	return groupPlan{
		Group:   v1alpha1.Group{Name: v1alpha1.FirstAPI, Role: v1alpha1.GroupAPI, VIPs: addresses(r.api)},
		derived: r.derivedIDs().API, wanted: r.in.VIP.Spec.VRRP.VirtualRouterIDs.API, field: routerIDFields + "api",
	}
}

func (r *resolver) dnsGroup() groupPlan {
	return groupPlan{
		Group:   v1alpha1.Group{Name: "dns", Role: v1alpha1.GroupDNS, VIPs: []netip.Addr{r.dns.Addr}},
		derived: r.derivedIDs().DNS, wanted: r.in.VIP.Spec.VRRP.VirtualRouterIDs.DNS, field: routerIDFields + "dns",
	}
}

func (r *resolver) defaultIngress(domain string) groupPlan {
	vip := &r.in.VIP.Spec
	p := groupPlan{
		Group: v1alpha1.Group{Name: "ingress", Role: v1alpha1.GroupIngress, Announce: r.announceOfIngress(), VIPs: addresses(r.ingress),
			Controller: v1alpha1.DefaultIngress, Domains: []string{"apps." + domain},
			NodeSelector: workerSelector(), HealthPort: vip.Ports.RouterHealth},
		derived: r.derivedIDs().Ingress, wanted: vip.VRRP.VirtualRouterIDs.Ingress, field: routerIDFields + "ingress",
	}
	for _, g := range vip.Ingress {
		if g.Name == v1alpha1.DefaultIngress {
			p.Domains = append(p.Domains, g.Domains...)
			p.HealthPort = cmp.Or(g.HealthPort, p.HealthPort)
			if g.NodeSelector != nil {
				p.NodeSelector = g.NodeSelector
			}
		}
	}
	for _, d := range r.routeDomains() {
		if !r.served(d.name) && !slices.Contains(p.Domains, d.name) {
			p.Domains = append(p.Domains, d.name)
		}
	}
	return p
}

func (r *resolver) ingressGroup(i int, g *v1alpha1.Ingress) groupPlan {
	selector := g.NodeSelector
	if selector == nil {
		selector = workerSelector()
	}
	return r.userGroup(v1alpha1.Group{Name: "ingress-" + g.Name, Role: v1alpha1.GroupIngress, Announce: g.Announce, VIPs: g.VIPs, Controller: cmp.Or(g.Controller, g.Name),
		Domains: g.Domains, NodeSelector: selector, HealthPort: cmp.Or(g.HealthPort, r.in.VIP.Spec.Ports.RouterHealth)},
		g.Name, g.VirtualRouterID, fmt.Sprintf("spec.ingress[%d]", i))
}

func (r *resolver) additionalAPIGroup(i int, g *v1alpha1.AdditionalAPI, domain string) groupPlan {
	return r.userGroup(v1alpha1.Group{Name: v1alpha1.FirstAPI + "-" + g.Name, Role: v1alpha1.GroupAPI, Announce: g.Announce, VIPs: g.VIPs, Names: apiNames(g, domain)},
		g.Name, g.VirtualRouterID, fmt.Sprintf("spec.additionalAPIVIPs[%d]", i))
}

func apiNames(g *v1alpha1.AdditionalAPI, domain string) []string {
	if len(g.Names) > 0 {
		return g.Names
	}
	return []string{v1alpha1.FirstAPI + "-" + g.Name + "." + domain}
}

// userGroup returns a user-defined group with its source field.
func (r *resolver) userGroup(g v1alpha1.Group, own string, id int, at string) groupPlan {
	return groupPlan{Group: g, own: own, derived: v1alpha1.RouterID(r.in.Install.Name + "-" + g.Name), wanted: id, field: at + ".virtualRouterID"}
}

func (r *resolver) derivedIDs() v1alpha1.VirtualRouterIDs {
	return v1alpha1.RouterIDs(r.in.Install.Name)
}

// workerSelector selects where routers run by default: compute nodes, and control-plane nodes
// that are schedulable, which have that label too.
func workerSelector() map[string]string {
	return map[string]string{v1alpha1.RoleLabel(v1alpha1.RoleWorker): ""}
}

// addVRRP adds the VRRP instances of the groups whose holders keepalived elects.
func (r *resolver) addVRRP(groups []groupPlan) {
	name := r.in.Install.Name
	ids := r.routerIDs(lists.Filter(groups, r.elected))
	for i := range groups {
		g := &groups[i]
		if !r.elected(*g) {
			continue
		}
		g.Instance = name + "_" + strings.ToUpper(string(g.Role))
		if g.own != "" {
			g.Instance += "_" + g.own
		}
		g.VirtualRouterID = ids[g.Name]
		g.Password = Password(name, g.Role)
		g.Together = r.in.Install.Platform == "openstack" && len(g.VIPs) > 1
	}
}

// Password returns the operator's own keepalived password for a group of VIPs, truncated to
// what fits an advert.
func Password(cluster string, role v1alpha1.GroupRole) string {
	return vrrp.AdvertisedPassword(cluster + "_" + strings.ToLower(string(role)) + "_vip")
}

// routerIDs returns a distinct ID for every group: the user's, else the derived one or the next
// free one.
func (r *resolver) routerIDs(groups []groupPlan) map[string]int {
	ids, taken := map[string]int{}, map[int]string{}
	give := func(group string, id int, field string) {
		if slices.Contains(r.in.VIP.Spec.VRRP.ReservedRouterIDs, id) {
			r.report(problem.Error, r.in.vipDocs, problem.Problem{Code: problem.RouterIDTaken, Field: cmp.Or(field, "spec.vrrp.reservedRouterIDs"),
				Found: fmt.Sprintf("%d, of group %s", id, group), Expected: "an ID that is not reserved", Hint: "'vipgen vr-ids --fix' finds one"})
		}
		if by, ok := taken[id]; ok {
			r.errorAt(r.in.vipDocs, problem.RouterIDTaken, field, fmt.Sprint(id), "an ID of its own, this is the one of group "+by)
		}
		ids[group], taken[id] = id, group
	}
	if r.besideOperators() && !r.routed() {
		// The ID of OpenShift's own keepalived on the bootstrap host.
		give(v1alpha1.FirstAPI, r.derivedIDs().API, "")
	}
	// The user's IDs first: derived ones avoid them.
	for _, g := range groups {
		if g.wanted != 0 && ids[g.Name] == 0 {
			give(g.Name, g.wanted, g.field)
		}
	}
	for _, g := range groups {
		if ids[g.Name] != 0 {
			continue
		}
		id := g.derived
		for taken[id] != "" {
			id = id%255 + 1
		}
		give(g.Name, id, "")
	}
	return ids
}

func addresses(list []place) []netip.Addr {
	return lists.Map(list, func(p place) netip.Addr { return p.Addr })
}
