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

// place is an address with where it stands, or would where the installer chose it.
type place struct {
	netip.Addr
	docs     layers
	field    string
	computed bool
}

// String is the address, and where the file does not have it, who has chosen it.
func (p place) String() string {
	if p.computed {
		return p.Addr.String() + ", the installer's default"
	}
	return p.Addr.String()
}

// at is the field, also where the file does not have it.
func (p place) at() string {
	if p.computed {
		return p.field + ", which has the installer's default"
	}
	return p.field
}

// placesOf are the install-config's VIPs.
func placesOf(docs layers, list []installconfig.Address) []place {
	return lists.Map(list, func(a installconfig.Address) place { return place{a.Addr, docs, a.Field, a.Default} })
}

// collectVIPs takes the VIPs from where the platform has them.
func (r *resolver) collectVIPs() {
	install, vip := r.in.Install, &r.in.VIP.Spec
	r.api = placesOf(layer(install.Doc), install.APIVIPs)
	r.ingress = placesOf(layer(install.Doc), install.IngressVIPs)
	if install.DNSVIP != nil {
		r.dns = &placesOf(layer(install.Doc), []installconfig.Address{*install.DNSVIP})[0]
	}
	r.api = r.takeVIPs(r.api, "spec.apiVIPs", vip.APIVIPs)
	r.ingress = r.takeVIPs(r.ingress, "spec.ingressVIPs", vip.IngressVIPs)
}

// takeVIPs takes those of the VIPConfig where the install-config has none.
func (r *resolver) takeVIPs(have []place, field string, list []netip.Addr) []place {
	if len(list) == 0 {
		return have
	}
	if len(have) > 0 {
		why := "the install-config has " + have[0].field
		if have[0].computed {
			why = fmt.Sprintf("%s in the install-config is the place, and without it the cluster gets %s", have[0].field, have[0])
		}
		r.errorAt(r.in.vipDocs, problem.ConflictingFields, field, fmt.Sprint(list), "no list here: "+why)
		return have
	}
	return places(r.in.vipDocs, field, list)
}

// planned is a group with what the user and its names say of its virtual router
// ID.
type planned struct {
	v1alpha1.Group
	// own is the user's name for it, which is part of that of its VRRP instances;
	// empty for the groups that every cluster has.
	own string
	// derived is its ID where the user gives none; wanted is the user's, 0 for
	// none, which stands at field.
	derived, wanted int
	field           string
}

// groups makes the VRRP groups: API, DNS of old clusters, ingress controllers,
// more API VIPs.
func (r *resolver) groups(domain string) []planned {
	if r.withoutVIPs() {
		// The names of a single node are its own address, which it knows itself.
		if r.in.Install.ControlPlane.Replicas == 1 {
			return []planned{r.firstAPI(), r.defaultIngress(domain)}
		}
		return nil
	}
	groups := []planned{r.firstAPI()}
	if r.dns != nil {
		groups = append(groups, r.dnsGroup())
	}
	groups = append(groups, r.defaultIngress(domain))
	for i, g := range r.in.VIP.Spec.Ingress {
		if g.Name != v1alpha1.DefaultIngress {
			groups = append(groups, r.moreIngress(i, &g))
		}
	}
	for i, g := range r.in.VIP.Spec.AdditionalAPIVIPs {
		groups = append(groups, r.moreAPI(i, &g, domain))
	}
	if r.in.VIP.Spec.LoadBalancer.Type == v1alpha1.LoadBalancerInCluster {
		r.elect(groups)
	}
	return groups
}

const routerIDFields = "spec.vrrp.virtualRouterIDs."

func (r *resolver) firstAPI() planned {
	return planned{
		Group:   v1alpha1.Group{Name: v1alpha1.FirstAPI, Role: v1alpha1.GroupAPI, VIPs: addresses(r.api)},
		derived: r.derivedIDs().API, wanted: r.in.VIP.Spec.VRRP.VirtualRouterIDs.API, field: routerIDFields + "api",
	}
}

func (r *resolver) dnsGroup() planned {
	return planned{
		Group:   v1alpha1.Group{Name: "dns", Role: v1alpha1.GroupDNS, VIPs: []netip.Addr{r.dns.Addr}},
		derived: r.derivedIDs().DNS, wanted: r.in.VIP.Spec.VRRP.VirtualRouterIDs.DNS, field: routerIDFields + "dns",
	}
}

func (r *resolver) defaultIngress(domain string) planned {
	vip := &r.in.VIP.Spec
	p := planned{
		Group: v1alpha1.Group{Name: "ingress", Role: v1alpha1.GroupIngress, VIPs: addresses(r.ingress),
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

func (r *resolver) moreIngress(i int, g *v1alpha1.Ingress) planned {
	selector := g.NodeSelector
	if selector == nil {
		selector = workerSelector()
	}
	return r.more(v1alpha1.Group{Name: "ingress-" + g.Name, Role: v1alpha1.GroupIngress, VIPs: g.VIPs, Controller: cmp.Or(g.Controller, g.Name),
		Domains: g.Domains, NodeSelector: selector, HealthPort: cmp.Or(g.HealthPort, r.in.VIP.Spec.Ports.RouterHealth)},
		g.Name, g.VirtualRouterID, fmt.Sprintf("spec.ingress[%d]", i))
}

func (r *resolver) moreAPI(i int, g *v1alpha1.AdditionalAPI, domain string) planned {
	return r.more(v1alpha1.Group{Name: v1alpha1.FirstAPI + "-" + g.Name, Role: v1alpha1.GroupAPI, VIPs: g.VIPs, Names: apiNames(g, domain)},
		g.Name, g.VirtualRouterID, fmt.Sprintf("spec.additionalAPIVIPs[%d]", i))
}

// apiNames are those that resolve to more API VIPs.
func apiNames(g *v1alpha1.AdditionalAPI, domain string) []string {
	if len(g.Names) > 0 {
		return g.Names
	}
	return []string{v1alpha1.FirstAPI + "-" + g.Name + "." + domain}
}

// more is a group of the user's own, whose entry stands at a field.
func (r *resolver) more(g v1alpha1.Group, own string, id int, at string) planned {
	return planned{Group: g, own: own, derived: v1alpha1.RouterID(r.in.Install.Name + "-" + g.Name), wanted: id, field: at + ".virtualRouterID"}
}

func (r *resolver) derivedIDs() v1alpha1.VirtualRouterIDs {
	return v1alpha1.RouterIDs(r.in.Install.Name)
}

// workerSelector is for where routers run by default: compute nodes, and
// control-plane nodes that are schedulable, which have that label too.
func workerSelector() map[string]string {
	return map[string]string{v1alpha1.RoleLabel(v1alpha1.RoleWorker): ""}
}

// elect adds what VRRP needs to groups.
func (r *resolver) elect(groups []planned) {
	name := r.in.Install.Name
	ids := r.routerIDs(groups)
	for i := range groups {
		g := &groups[i]
		g.Instance = name + "_" + strings.ToUpper(string(g.Role))
		if g.own != "" {
			g.Instance += "_" + g.own
		}
		g.VirtualRouterID = ids[g.Name]
		g.Password = Password(name, g.Role)
		g.Together = r.in.Install.Platform == "openstack" && len(g.VIPs) > 1
	}
}

// Password is the one of the operator's own keepalived for a group of VIPs, as much
// of it as goes into an advert.
func Password(cluster string, role v1alpha1.GroupRole) string {
	return vrrp.AdvertisedPassword(cluster + "_" + strings.ToLower(string(role)) + "_vip")
}

// routerIDs gives every group an ID of its own: the user's, else the derived
// one, which steps aside for one that is taken.
func (r *resolver) routerIDs(groups []planned) map[string]int {
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
	if r.besideOperators() {
		// OpenShift's own keepalived has this one on the bootstrap host.
		give(v1alpha1.FirstAPI, r.derivedIDs().API, "")
	}
	// The user's come first: derived ones step aside, never they.
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
