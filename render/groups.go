package render

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// place is an address with where it stands.
type place struct {
	netip.Addr
	docs  layers
	field string
}

// collectVIPs takes the VIPs from where the platform has them.
func (r *resolver) collectVIPs() {
	install, vip := r.in.Install, &r.in.VIP.Spec
	for _, a := range install.APIVIPs {
		r.api = append(r.api, place{a.Addr, layer(install.Doc), a.Field})
	}
	for _, a := range install.IngressVIPs {
		r.ingress = append(r.ingress, place{a.Addr, layer(install.Doc), a.Field})
	}
	if install.DNSVIP != nil {
		r.dns = &place{install.DNSVIP.Addr, layer(install.Doc), install.DNSVIP.Field}
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
		r.errorAt(r.in.vipDocs, problem.ConflictingFields, field, fmt.Sprint(list), "no list here: the install-config has "+have[0].field)
		return have
	}
	for i, a := range list {
		have = append(have, place{a, r.in.vipDocs, fmt.Sprintf("%s[%d]", field, i)})
	}
	return have
}

// groups makes the VRRP groups: API, DNS of old clusters, ingress controllers.
func (r *resolver) groups(domain string) []v1alpha1.Group {
	vip := &r.in.VIP.Spec
	api := v1alpha1.Group{Name: "api", Role: v1alpha1.GroupAPI, VIPs: addresses(r.api)}
	ingress := v1alpha1.Group{Name: "ingress", Role: v1alpha1.GroupIngress, VIPs: addresses(r.ingress),
		Controller: v1alpha1.DefaultIngress, Domains: []string{"apps." + domain},
		NodeSelector: workerSelector(), HealthPort: vip.Ports.RouterHealth}
	groups := []v1alpha1.Group{api}
	if r.dns != nil {
		groups = append(groups, v1alpha1.Group{Name: "dns", Role: v1alpha1.GroupDNS, VIPs: []netip.Addr{r.dns.Addr}})
	}
	for _, g := range vip.Ingress {
		if g.Name == v1alpha1.DefaultIngress {
			ingress.Domains = append(ingress.Domains, g.Domains...)
			ingress.HealthPort = cmp.Or(g.HealthPort, ingress.HealthPort)
			if g.NodeSelector != nil {
				ingress.NodeSelector = g.NodeSelector
			}
		}
	}
	groups = append(groups, ingress)
	for _, g := range vip.Ingress {
		if g.Name == v1alpha1.DefaultIngress {
			continue
		}
		selector := g.NodeSelector
		if selector == nil {
			selector = workerSelector()
		}
		groups = append(groups, v1alpha1.Group{Name: "ingress-" + g.Name, Role: v1alpha1.GroupIngress, VIPs: g.VIPs,
			Controller: g.Name, Domains: g.Domains, NodeSelector: selector, HealthPort: cmp.Or(g.HealthPort, vip.Ports.RouterHealth)})
	}
	if vip.LoadBalancer.Type == v1alpha1.LoadBalancerInCluster {
		r.elect(groups)
	}
	return groups
}

// workerSelector is for where routers run by default: compute nodes, and
// control-plane nodes that are schedulable, which have that label too.
func workerSelector() map[string]string {
	return map[string]string{v1alpha1.RoleLabel(v1alpha1.RoleWorker): ""}
}

// elect adds what VRRP needs to groups.
func (r *resolver) elect(groups []v1alpha1.Group) {
	name := r.in.Install.Name
	ids := r.routerIDs(groups)
	for i := range groups {
		g := &groups[i]
		g.Instance = name + "_" + strings.ToUpper(string(g.Role))
		if g.Role == v1alpha1.GroupIngress && g.Controller != v1alpha1.DefaultIngress {
			g.Instance += "_" + g.Controller
		}
		g.VirtualRouterID = ids[g.Name]
		g.Password = password(name, g)
		g.Together = r.in.Install.Platform == "openstack" && len(g.VIPs) > 1
	}
}

// password is the one of the operator's own keepalived, as much of it as goes
// into an advert (RFC 2338 section 5.3.10: 8 bytes).
func password(cluster string, g *v1alpha1.Group) string {
	p := cluster + "_" + strings.ToLower(string(g.Role)) + "_vip"
	return p[:min(8, len(p))]
}

// routerIDs gives every group an ID of its own: the user's, else the derived
// one, which steps aside for one that is taken.
func (r *resolver) routerIDs(groups []v1alpha1.Group) map[string]int {
	name, want := r.in.Install.Name, r.in.VIP.Spec.VRRP.VirtualRouterIDs
	derived := v1alpha1.RouterIDs(name)
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
		give("api", derived.API, "")
	}
	// The user's come first: derived ones step aside, never they.
	for _, g := range groups {
		if id, field := r.wantedID(g, want); id != 0 && ids[g.Name] == 0 {
			give(g.Name, id, field)
		}
	}
	for _, g := range groups {
		if ids[g.Name] != 0 {
			continue
		}
		var id int
		switch {
		case g.Role == v1alpha1.GroupAPI:
			id = derived.API
		case g.Role == v1alpha1.GroupDNS:
			id = derived.DNS
		case g.Controller == v1alpha1.DefaultIngress:
			id = derived.Ingress
		default:
			id = v1alpha1.RouterID(name + "-" + g.Name)
		}
		for taken[id] != "" {
			id = id%255 + 1
		}
		give(g.Name, id, "")
	}
	return ids
}

// wantedID is the ID that the user gave to a group, with its field.
func (r *resolver) wantedID(g v1alpha1.Group, want v1alpha1.VirtualRouterIDs) (int, string) {
	const base = "spec.vrrp.virtualRouterIDs."
	switch {
	case g.Role == v1alpha1.GroupAPI:
		return want.API, base + "api"
	case g.Role == v1alpha1.GroupDNS:
		return want.DNS, base + "dns"
	case g.Controller == v1alpha1.DefaultIngress:
		return want.Ingress, base + "ingress"
	}
	for i, c := range r.in.VIP.Spec.Ingress {
		if c.Name == g.Controller {
			return c.VirtualRouterID, fmt.Sprintf("spec.ingress[%d].virtualRouterID", i)
		}
	}
	return 0, ""
}

func addresses(list []place) []netip.Addr {
	var out []netip.Addr
	for _, p := range list {
		out = append(out, p.Addr)
	}
	return out
}
