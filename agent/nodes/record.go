package nodes

import (
	"cmp"
	"encoding/json"
	"net/netip"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/agent/nodelist"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// record is the part of a Node that is kept, also on disk. It depends on the Node only:
// rules of the cluster's configuration, which may change, are applied in a Snapshot.
type record struct {
	Name string `json:"name"`
	// Addresses are the addresses in the Node's status, in order.
	Addresses []netip.Addr `json:"addresses"`
	// Host are the addresses in OVN-Kubernetes' annotations, sorted.
	Host []netip.Addr `json:"host,omitempty"`
	// Networks are the networks of Host in the annotations, sorted.
	Networks []netip.Prefix  `json:"networks,omitempty"`
	Labels   labels          `json:"labels,omitempty"`
	Update   nodelist.Update `json:"update,omitzero"`
	// VRRP is the announcement of the node's agent; see Watcher.Announce.
	VRRP string `json:"vrrp,omitempty"`

	// invalid lists the invalid parts of the Node, which are left out.
	invalid []string
}

func (r *record) equal(o *record) bool {
	return r.Name == o.Name && r.Update == o.Update && r.VRRP == o.VRRP && slices.Equal(r.Addresses, o.Addresses) &&
		slices.Equal(r.Host, o.Host) && slices.Equal(r.Networks, o.Networks) && slices.Equal(r.Labels, o.Labels) && slices.Equal(r.invalid, o.invalid)
}

// newRecord returns the record of a Node. All of it is valid except possibly the name.
func newRecord(n *nodeObject) *record {
	r := &record{
		Name:   n.Name,
		Labels: n.Labels,
		Update: nodelist.Update{
			CurrentConfig:  n.Annotations.CurrentConfig,
			DesiredConfig:  n.Annotations.DesiredConfig,
			State:          n.Annotations.State,
			KubeletVersion: n.Status.NodeInfo.KubeletVersion,
		},
		VRRP: n.Annotations.VRRP,
	}
	egress := map[netip.Addr]bool{}
	for _, p := range append(parseAll(n.Annotations.SecondaryEgressIPs), parseAll(n.Annotations.BridgeEgressIPs)...) {
		egress[p.Addr()] = true
	}
	keep := func(a netip.Addr) bool { return usable(a) && !egress[a] }
	for _, s := range n.Status.Addresses {
		// ExternalIP is the address of a cloud's NAT; the other types are names.
		if s.Type != "InternalIP" {
			continue
		}
		if a, err := netip.ParseAddr(s.Address); err == nil && keep(a) {
			r.Addresses = append(r.Addresses, a)
		}
	}
	// Releases with host-cidrs no longer update host-addresses.
	host := cmp.Or(n.Annotations.HostCIDRs, n.Annotations.HostAddresses)
	for _, p := range parseAll(host) {
		if !keep(p.Addr()) {
			continue
		}
		r.Host = append(r.Host, p.Addr())
		if !p.IsSingleIP() {
			r.Networks = append(r.Networks, p.Masked())
		}
	}
	for _, l := range r.Labels {
		if name, ok := strings.CutPrefix(l.Key, v1alpha1.RoleLabel("")); ok && !v1alpha1.ValidName(name) {
			r.discard("role %.80q", name) // the label stays: groups may select it
		}
	}
	r.sanitize()
	return r
}

// parseAll parses a JSON list of addresses, with prefix length or as hosts. Invalid
// entries are left out: only OVN-Kubernetes writes the list.
func parseAll(s string) []netip.Prefix {
	var texts []string
	if s == "" || json.Unmarshal([]byte(s), &texts) != nil {
		return nil
	}
	var out []netip.Prefix
	for _, t := range texts {
		host, _, _ := strings.Cut(t, "/")
		a, err := netip.ParseAddr(host)
		if err != nil {
			continue
		}
		p, err := netip.ParsePrefix(t)
		if err != nil {
			p = netip.PrefixFrom(a, a.BitLen())
		}
		out = append(out, p)
	}
	return out
}

// ovnMasquerade is OVN-Kubernetes' internal network on every node, with fd69::2 as the
// node (hard case 10).
var ovnMasquerade = netip.MustParsePrefix("fd69::/112")

func usable(a netip.Addr) bool {
	return v1alpha1.UsableAddress(a) == "" && !ovnMasquerade.Contains(a)
}

// peer returns the node as its peers see it. An address family missing in the status
// comes from the annotations (hard case 12): addresses in the nodes' networks if there
// are any, because the annotations also list storage networks and the like; one in the
// VIPs' network first, like the operator's own keepalived (baremetal-runtimecfg,
// getNodeIpForRequestedIpStack). So does an address in a VIP network without one in the
// status. A VIP is never a node's address.
func (r *record) peer(spec *v1alpha1.ClusterConfigSpec) v1alpha1.Peer {
	p := v1alpha1.Peer{Name: r.Name, Role: role(r.Labels), Labels: r.Labels.only(isSelector(spec))}
	for _, a := range r.Addresses {
		if !isVIP(spec, a) {
			p.Addresses = append(p.Addresses, a)
		}
	}
	// NodeNetworks covers the networks of this node only.
	networks := spec.NodeNetworks([]v1alpha1.Interface{{Addresses: r.Networks}})
	vipNetworks := spec.VIPNetworks(networks)
	status := p.Addresses
	for _, is4 := range []bool{true, false} {
		family := func(a netip.Addr) bool { return a.Is4() == is4 }
		if slices.ContainsFunc(status, family) {
			continue
		}
		var all, near []netip.Addr
		for _, a := range r.Host {
			if !family(a) || isVIP(spec, a) {
				continue
			}
			all = append(all, a)
			if v1alpha1.InNetworks(networks, a) {
				near = append(near, a)
			}
		}
		if len(near) > 0 {
			all = near
		}
		if first := slices.IndexFunc(all, func(a netip.Addr) bool { return v1alpha1.InNetworks(vipNetworks, a) }); first > 0 {
			all = slices.Concat(all[first:first+1], all[:first], all[first+1:])
		}
		p.Addresses = append(p.Addresses, all...)
	}
	for _, network := range vipNetworks {
		if slices.ContainsFunc(p.Addresses, network.Contains) {
			continue
		}
		for _, a := range r.Host {
			if network.Contains(a) && !isVIP(spec, a) {
				p.Elsewhere = append(p.Elsewhere, a)
			}
		}
	}
	return p
}

// isSelector returns a predicate for label keys that decide what a node does: roles, and
// the node selectors of groups.
func isSelector(spec *v1alpha1.ClusterConfigSpec) func(key string) bool {
	return func(key string) bool {
		return strings.HasPrefix(key, v1alpha1.RoleLabel("")) ||
			slices.ContainsFunc(spec.Groups, func(g v1alpha1.Group) bool { _, ok := g.NodeSelector[key]; return ok })
	}
}

func isVIP(spec *v1alpha1.ClusterConfigSpec, a netip.Addr) bool {
	return slices.ContainsFunc(spec.Groups, func(g v1alpha1.Group) bool { return slices.Contains(g.VIPs, a) })
}

// role returns the pool of a node by its labels. Nodes of a custom pool have the worker
// label, too; nodes without a role label, or with one that names no valid pool (hard case
// 37), are workers. The bootstrap host is no Node.
func role(l labels) string {
	has := func(role string) bool {
		return slices.ContainsFunc(l, func(l label) bool { return l.Key == v1alpha1.RoleLabel(role) })
	}
	switch {
	case has(v1alpha1.RoleMaster), has("control-plane"):
		return v1alpha1.RoleMaster
	case has(v1alpha1.RoleArbiter):
		return v1alpha1.RoleArbiter
	}
	custom := ""
	for _, x := range l {
		name, ok := strings.CutPrefix(x.Key, v1alpha1.RoleLabel(""))
		if ok && v1alpha1.ValidName(name) && name != v1alpha1.RoleWorker && name != v1alpha1.RoleBootstrap && (custom == "" || name < custom) {
			custom = name
		}
	}
	return cmp.Or(custom, v1alpha1.RoleWorker)
}
