package render

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/render/installconfig"
)

// checkOutside reports VIPs in none of the machine networks. Where these are the networks of
// the nodes, no node could hold such a VIP. Elsewhere nodes find its network (hard case 44),
// with one warning for all.
func (r *resolver) checkOutside(vips []place) {
	if r.external() {
		return
	}
	var found []place
	for _, v := range vips {
		if v.routed || slices.ContainsFunc(r.in.Install.MachineNetworks, func(n installconfig.Network) bool { return n.Contains(v.Addr) }) {
			continue
		}
		if more := strings.HasPrefix(v.field, "spec.additionalAPIVIPs"); more || r.networksBind() {
			hint := r.defaultNetwork()
			if more {
				hint = "nodes have to know the network of more API VIPs: add it to networking.machineNetwork"
			}
			r.report(problem.Error, v.docs, problem.Problem{Code: problem.VIPOutsideNetwork, Field: v.field, Found: v.String(),
				Expected: "an address in " + r.machineNetworkList(), Hint: hint})
			continue
		}
		found = append(found, v)
	}
	if len(found) == 0 {
		return
	}
	r.report(problem.Warning, found[0].docs, problem.Problem{Code: problem.VIPOutsideNetwork, Field: found[0].field,
		Found: lists.Join(found, ", "), Expected: "addresses in " + r.machineNetworkList(), Hint: r.bindingHint(found)})
}

// networksBind reports whether the machine networks are those of the nodes. OpenShift's
// installer requires VIPs in them (its pkg/types/validation/installconfig.go,
// validateVIPsForPlatform) on these platforms, unless the load balancer is the user's: oVirt
// since there are lists of VIPs, in 4.12, and vSphere and, since 4.19, Nutanix with the
// agent-based method. Objects of the assisted installer may have none: it asks the hosts.
func (r *resolver) networksBind() bool {
	if r.in.Install.LoadBalancer == "UserManaged" || len(r.in.Install.MachineNetworks) == 0 {
		return false
	}
	switch r.in.Install.Platform {
	case "baremetal", "openstack":
		return true
	case "vsphere":
		return r.in.Agent != nil
	case "nutanix":
		return r.in.Agent != nil && (r.version == "" || assets.AtLeast(r.version, "4.19"))
	case "ovirt":
		return r.version != ""
	}
	return false
}

func (r *resolver) bindingHint(vips []place) string {
	spec := v1alpha1.ClusterConfigSpec{Groups: []v1alpha1.Group{{Announce: v1alpha1.AnnounceVRRP, VIPs: addresses(vips)}}}
	spec.MachineNetworks = r.machineNetworks(spec.Groups)
	where := "networking.machineNetwork does not show then where the nodes are: "
	if len(r.in.Install.MachineNetworks) == 0 {
		where = ""
	}
	by := where + "each node holds a VIP on the interface that has the VIP's subnet, " +
		"or else on that of the default route, and takes the other nodes' addresses there; to have this checked, put the nodes' network there"
	if len(spec.VIPsOutside()) == 0 {
		by = where + "their static addresses do, which are in " +
			lists.Join(spec.VIPNetworks(spec.MachineNetworks), " or ")
	}
	if why := r.defaultNetwork(); why != "" {
		by = why + "; " + by
	}
	if r.in.Install.LoadBalancer == "UserManaged" {
		by += "; if a load balancer outside of the cluster has them: spec.loadBalancer.type: External in vipgen.yaml"
	}
	return by
}

// defaultNetwork returns a note where the machine network is the default.
func (r *resolver) defaultNetwork() string {
	if list := r.in.Install.MachineNetworks; len(list) > 0 && list[0].Default {
		return "networking.machineNetwork is not given, so this is the installer's default"
	}
	return ""
}

func (r *resolver) machineNetworkList() string {
	if len(r.in.Install.MachineNetworks) == 0 {
		return "networking.machineNetwork, which is not given"
	}
	return lists.Join(installconfig.Prefixes(r.in.Install.MachineNetworks), " or ")
}

// machineNetworks returns the install-config's machine networks. Where a VIP is in none of them
// (hard case 44) but static addresses of hosts show its network, that one replaces those of its
// family: nodes need not find it.
func (r *resolver) machineNetworks(groups []v1alpha1.Group) []netip.Prefix {
	spec := v1alpha1.ClusterConfigSpec{LoadBalancer: r.in.VIP.Spec.LoadBalancer.Type, Announce: r.in.VIP.Spec.Announce, Groups: groups,
		MachineNetworks: installconfig.Prefixes(r.in.Install.MachineNetworks)}
	if spec.LoadBalancer == v1alpha1.LoadBalancerExternal || spec.OnlyRouted() {
		return spec.MachineNetworks
	}
	for _, is4 := range []bool{true, false} {
		if found := r.networksOfHosts(&spec, is4); len(found) > 0 {
			spec.MachineNetworks = replaceFamily(spec.MachineNetworks, found)
		}
	}
	return spec.MachineNetworks
}

// networksOfHosts returns the networks of one family that hosts with static addresses share
// with VIPs outside of the machine networks, with the machine networks that hold other VIPs;
// nil where hosts do not show it for each such VIP.
func (r *resolver) networksOfHosts(spec *v1alpha1.ClusterConfigSpec, is4 bool) []netip.Prefix {
	out := slices.DeleteFunc(spec.VIPNetworks(spec.MachineNetworks), func(n netip.Prefix) bool { return n.Addr().Is4() != is4 })
	known := false
	for _, vip := range spec.VIPsOutside() {
		if vip.Is4() != is4 {
			continue
		}
		var widest netip.Prefix
		for _, h := range r.hosts() {
			for _, a := range h.Addresses {
				if n := a.Masked(); n.Contains(vip) && (!widest.IsValid() || n.Bits() < widest.Bits()) {
					widest = n
				}
			}
		}
		if !widest.IsValid() {
			return nil
		}
		known = true
		out = lists.Add(out, widest)
	}
	if !known {
		return nil
	}
	return out
}

// replaceFamily puts networks of one family at the place of the first of that family, and drops
// the others of it: the order of families decides the primary one.
func replaceFamily(list, found []netip.Prefix) []netip.Prefix {
	same := func(n netip.Prefix) bool { return n.Addr().Is4() == found[0].Addr().Is4() }
	at := slices.IndexFunc(list, same)
	rest := slices.DeleteFunc(slices.Clone(list), same)
	if at < 0 {
		at = len(rest)
	}
	return slices.Insert(rest, min(at, len(rest)), found...)
}

// inNodeNetworks drops addresses of storage and other networks. A host's only address of a
// family stays.
func inNodeNetworks(spec *v1alpha1.ClusterConfigSpec, list []installconfig.Prefix) []netip.Addr {
	var host v1alpha1.Interface
	four := 0
	for _, p := range list {
		host.Addresses = append(host.Addresses, p.Prefix)
		if p.Addr().Is4() {
			four++
		}
	}
	host.DefaultRoute4, host.DefaultRoute6 = four == 1, len(list)-four == 1
	networks := spec.NodeNetworks([]v1alpha1.Interface{host})
	addresses := lists.Map(list, func(p installconfig.Prefix) netip.Addr { return p.Addr() })
	return lists.Filter(addresses, func(a netip.Addr) bool { return v1alpha1.InNetworks(networks, a) })
}
