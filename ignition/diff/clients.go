package diff

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
)

// specs returns the cluster.yaml of a pool's nodes on both sides; nil where a side has no
// readable one.
func specs(was, is nodeState) (before, after *v1alpha1.ClusterConfigSpec) {
	spec := func(s nodeState) *v1alpha1.ClusterConfigSpec {
		c, err := v1alpha1.LoadClusterConfig(v1alpha1.ClusterConfigPath, s.files[v1alpha1.ClusterConfigPath].Contents)
		if err != nil {
			return nil
		}
		return &c.Spec
	}
	return spec(was), spec(is)
}

// Impact is a change of VIPs or of VRRP with its impact on clients.
type Impact struct {
	// What describes the change, such as "API VIP 192.0.2.5 becomes 192.0.2.7".
	What string `json:"what"`
	// Clients describes the impact on clients and its remedies, one sentence each.
	Clients []string `json:"clients"`
}

func clientImpacts(before, after *v1alpha1.ClusterConfigSpec) []Impact {
	var out []Impact
	for _, s := range []*Impact{settingsImpact(before, after), balancerImpact(before, after)} {
		if s != nil {
			out = append(out, *s)
		}
	}
	name := func(g v1alpha1.Group) string { return g.Name }
	names := slices.Concat(lists.Map(before.Groups, name), lists.Map(after.Groups, name))
	slices.Sort(names)
	for _, n := range slices.Compact(names) {
		was, is := groupOf(before, n), groupOf(after, n)
		out = append(out, vipImpacts(before, after, was, is)...)
	}
	return append(append(out, announceImpacts(before, after)...), routerIDImpacts(before, after)...)
}

// announceImpacts returns the impact where VIPs that stay are announced in another way.
func announceImpacts(before, after *v1alpha1.ClusterConfigSpec) (out []Impact) {
	if before.LoadBalancer != after.LoadBalancer {
		return nil
	}
	for _, is := range after.Groups {
		for _, vip := range is.VIPs {
			was := groupWith(before, vip)
			if was == nil || before.AnnounceOf(was) == after.AnnounceOf(&is) {
				continue
			}
			out = append(out, Impact{fmt.Sprintf("announcement of %s %s becomes %s", vip, before.AnnounceOf(was), after.AnnounceOf(&is)), []string{
				"the VIP does not answer, or two nodes have it, until the last node and the routers have the change. Give the new side an address of its own: 'Move to BGP and back' (docs/move-to-bgp.md)"}})
		}
	}
	return out
}

// routerIDImpacts returns the impact where VIPs that stay get another virtual router ID, also
// by moving to another group.
func routerIDImpacts(before, after *v1alpha1.ClusterConfigSpec) (out []Impact) {
	for _, is := range after.Groups {
		var moved []netip.Addr
		id := 0
		for _, vip := range is.VIPs {
			if was := groupWith(before, vip); was != nil && was.VirtualRouterID != is.VirtualRouterID && was.VirtualRouterID*is.VirtualRouterID != 0 {
				moved, id = append(moved, vip), was.VirtualRouterID
			}
		}
		if moved == nil {
			continue
		}
		out = append(out, Impact{fmt.Sprintf("virtual router ID of %s %d becomes %d", lists.Join(moved, ", "), id, is.VirtualRouterID), []string{
			"nodes with one ID ignore those with the other: until the last node has the change, two nodes hold the VIP (split brain), and clients lose connections. " +
				fmt.Sprintf("Keep the ID (%s of group %s), or have all nodes changed at once in a maintenance window", "virtualRouterID", is.Name)}})
	}
	return out
}

func groupWith(s *v1alpha1.ClusterConfigSpec, vip netip.Addr) *v1alpha1.Group {
	if i := slices.IndexFunc(s.Groups, func(g v1alpha1.Group) bool { return slices.Contains(g.VIPs, vip) }); i >= 0 {
		return &s.Groups[i]
	}
	return nil
}

func groupOf(s *v1alpha1.ClusterConfigSpec, name string) *v1alpha1.Group {
	if i := slices.IndexFunc(s.Groups, func(g v1alpha1.Group) bool { return g.Name == name }); i >= 0 {
		return &s.Groups[i]
	}
	return nil
}

// vipImpacts returns the impact of a group whose VIPs change, family by family.
func vipImpacts(before, after *v1alpha1.ClusterConfigSpec, was, is *v1alpha1.Group) []Impact {
	g := cmp.Or(is, was)
	var old, now []netip.Addr
	if was != nil {
		old = was.VIPs
	}
	if is != nil {
		now = is.VIPs
	}
	var out []Impact
	for _, six := range []bool{false, true} {
		of := func(list []netip.Addr) (a netip.Addr) {
			if i := slices.IndexFunc(list, func(a netip.Addr) bool { return a.Is6() == six }); i >= 0 {
				a = list[i]
			}
			return a
		}
		from, to := of(old), of(now)
		if from == to {
			continue
		}
		s := Impact{What: becomes(g, from, to)}
		if from.IsValid() {
			s.Clients = append(s.Clients, oldAddress(after, from))
		}
		switch {
		case !to.IsValid():
		case after.LoadBalancer == v1alpha1.LoadBalancerExternal:
			s.Clients = append(s.Clients, fmt.Sprintf("nodes do not hold it: the external load balancer must have %s before", to))
		case groupWith(before, to) == nil && after.AnnounceOf(is).Routed():
			s.Clients = append(s.Clients, fmt.Sprintf("%s answers once the nodes have the change, and routers accept it", to))
		case groupWith(before, to) == nil:
			s.Clients = append(s.Clients, fmt.Sprintf("%s answers once the nodes have the change: it must be free, and outside of DHCP ranges", to))
		}
		s.Clients = append(s.Clients, followUps(after, g, from, to)...)
		out = append(out, s)
	}
	return out
}

func becomes(g *v1alpha1.Group, from, to netip.Addr) string {
	vip := "VIP of " + g.Name
	switch {
	case !from.IsValid():
		return fmt.Sprintf("%s %s is added", vip, to)
	case !to.IsValid():
		return fmt.Sprintf("%s %s is removed", vip, from)
	}
	return fmt.Sprintf("%s %s becomes %s", vip, from, to)
}

// oldAddress describes the fate of an address that a group gives up.
func oldAddress(after *v1alpha1.ClusterConfigSpec, vip netip.Addr) string {
	if g := groupWith(after, vip); g != nil {
		again := "; connections to it are opened again when its holder gets the change"
		if after.AnnounceOf(g).Routed() {
			again = ""
		}
		return fmt.Sprintf("%s continues to answer, as a VIP of %s%s", vip, g.Name, again)
	}
	keep := ". 'Change a VIP' (docs/change-a-vip.md) keeps it meanwhile"
	if after.LoadBalancer != v1alpha1.LoadBalancerInCluster {
		keep = ""
	}
	return fmt.Sprintf("%s does not answer once all nodes have the change: clients that still use it, or resolve a name to it, lose the cluster%s", vip, keep)
}

// followUps returns the changes that are needed outside of the nodes.
func followUps(s *v1alpha1.ClusterConfigSpec, g *v1alpha1.Group, from, to netip.Addr) (out []string) {
	names := lists.Map(g.Domains, func(d string) string { return "*." + d })
	if g.Role == v1alpha1.GroupAPI {
		names = s.APINames(g)
	}
	if len(names) > 0 {
		do := fmt.Sprintf("have %s resolve to %s", strings.Join(names, ", "), to)
		if !to.IsValid() {
			do = fmt.Sprintf("take %s from the records of %s", from, strings.Join(names, ", "))
		}
		out = append(out, "DNS outside of the cluster must follow: "+do+"; nodes answer without it")
	}
	if !g.SharedWithOperator() || g.Role == v1alpha1.GroupDNS || !s.OperatorHasVIPs() {
		return out
	}
	field, reads := "apiServerInternalIPs", ", such as new machines, which get their first configuration from it"
	if g.Role == v1alpha1.GroupIngress {
		field, reads = "ingressIPs", ""
	}
	out = append(out, fmt.Sprintf("OpenShift's Infrastructure object keeps the old address (%s is fixed at installation): programs that read it there continue to use it%s", field, reads))
	if g.Role == v1alpha1.GroupAPI {
		out = append(out, "the API servers' certificate stays as it was installed: a client that connects to the new address by the address alone needs the server name api."+s.Domain)
	}
	return out
}

// balancerImpact returns what clients see, in the order in which it happens, when the nodes
// give up their VIPs for those of an external load balancer, or take VIPs again; nil elsewhere.
func balancerImpact(before, after *v1alpha1.ClusterConfigSpec) *Impact {
	const inCluster, external = v1alpha1.LoadBalancerInCluster, v1alpha1.LoadBalancerExternal
	s := &Impact{What: fmt.Sprintf("load balancer %s becomes %s", before.LoadBalancer, after.LoadBalancer)}
	switch from, to := before.LoadBalancer, after.LoadBalancer; {
	case from == inCluster && to == external:
		s.Clients = []string{
			"before: the external load balancer serves under addresses of its own, and DNS outside of the cluster leads there",
			"then the pools change one by one, the control plane last: its nodes alone hold the API VIP, which nodes without the change need",
			"until its nodes are also done, they resolve *.apps to an ingress VIP that no router is left to answer at: operators may report Degraded",
		}
	case from == external && to == inCluster:
		s.Clients = []string{
			"first the control plane changes: its nodes alone hold the API VIP, which nodes with the change need",
			"until a node with a router is also done, they resolve *.apps to an ingress VIP that no router answers at: operators may report Degraded",
			"then the other pools change, and DNS outside of the cluster leads to the VIPs: until then the external load balancer serves",
		}
	default:
		return nil
	}
	for _, g := range after.Groups {
		for _, vip := range g.VIPs {
			if groupWith(before, vip) != nil {
				s.Clients = append(s.Clients, fmt.Sprintf("%s is an address of both: while some nodes have the change, a node and the external load balancer hold it (split brain), or neither does. Give the new side another one", vip))
			}
		}
	}
	return s
}

// settingsImpact returns the impact of other VRRP settings, nil where they stay.
func settingsImpact(before, after *v1alpha1.ClusterConfigSpec) *Impact {
	was, is := before.VRRP.Target, after.VRRP.Target
	if was == is || !before.ByVRRP() || !after.ByVRRP() {
		return nil
	}
	text := func(v v1alpha1.VRRPSettings) string {
		return fmt.Sprintf("%s (VRRPv%d, %dms, %s)", v.Profile, v.Version, v.AdvertIntervalMS, v.Mode)
	}
	s := &Impact{What: fmt.Sprintf("VRRP settings %s become %s", text(was), text(is))}
	if is.Profile != was.Profile && is.Mode == was.Mode && is.Version == was.Version && is.AdvertIntervalMS == was.AdvertIntervalMS {
		s.Clients = []string{"nothing: the profile alone has another name"}
		return s
	}
	outage := was.AdvertIntervalMS + 3*is.AdvertIntervalMS
	s.Clients = []string{
		fmt.Sprintf("nodes keep the old settings until all of them have the new ones, then migrate at one instant: VIPs do not answer for %dms at most, and connections through a VIP that moves are opened again", outage),
		"a node that is off, or does not get the change, keeps all of them from migrating: 'vipgen-agent status' says which",
	}
	return s
}
