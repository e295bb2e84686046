package nodes

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// record is what is kept of a Node, and written to disk. It depends on the Node
// alone: what the cluster's configuration says about its addresses is applied
// when a Snapshot is made, because that configuration can change.
type record struct {
	Name string `json:"name"`
	// Addresses are those of the Node's status, in its order.
	Addresses []netip.Addr `json:"addresses"`
	// Host are those of OVN-Kubernetes' annotations, sorted.
	Host []netip.Addr `json:"host,omitempty"`
	// Networks are those that Host is in, as far as the annotations say so, sorted.
	Networks []netip.Prefix `json:"networks,omitempty"`
	Labels   labels         `json:"labels,omitempty"`
	Update   Update         `json:"update,omitzero"`
	// VRRP is what the agent there says of its VRRP settings; see Watcher.Announce.
	VRRP string `json:"vrrp,omitempty"`

	// invalid says what of the Node is left out because it is not valid.
	invalid []string
}

// Update is how far a node's update is.
type Update struct {
	// CurrentConfig and DesiredConfig are the names of the rendered
	// MachineConfigs that the node has and is to have.
	CurrentConfig string `json:"currentConfig,omitempty"`
	DesiredConfig string `json:"desiredConfig,omitempty"`
	// State is "Done" when the node has nothing to do.
	State string `json:"state,omitempty"`
	// KubeletVersion is such as "v1.34.2".
	KubeletVersion string `json:"kubeletVersion,omitempty"`
}

func (r *record) equal(o *record) bool {
	return r.Name == o.Name && r.Update == o.Update && r.VRRP == o.VRRP && slices.Equal(r.Addresses, o.Addresses) &&
		slices.Equal(r.Host, o.Host) && slices.Equal(r.Networks, o.Networks) && slices.Equal(r.Labels, o.Labels) && slices.Equal(r.invalid, o.invalid)
}

// newRecord takes from a Node what is kept of it. Whatever the Node holds, the
// record is valid but for its name.
func newRecord(n *nodeObject) *record {
	r := &record{
		Name:   n.Name,
		Labels: n.Labels,
		Update: Update{
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
		// ExternalIP is that of a cloud's address translation; the other types
		// are names.
		if s.Type != "InternalIP" {
			continue
		}
		if a, err := netip.ParseAddr(s.Address); err == nil && keep(a) {
			r.Addresses = append(r.Addresses, a)
		}
	}
	// Releases that write host-cidrs no longer keep host-addresses current.
	host := n.Annotations.HostCIDRs
	if host == "" {
		host = n.Annotations.HostAddresses
	}
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
			r.note("role %.80q", name) // the label stays: groups may select by it
		}
	}
	r.tidy()
	return r
}

// parseAll reads a JSON list of addresses with prefix length, or without, which is
// then that of a host. What is no address is left out: nobody but OVN-Kubernetes
// vouches for it.
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

// ovnMasquerade is a network that OVN-Kubernetes has on every node for itself,
// with fd69::2 as the node (hard case 10).
var ovnMasquerade = netip.MustParsePrefix("fd69::/112")

func usable(a netip.Addr) bool {
	return v1alpha1.UsableAddress(a) == "" && !ovnMasquerade.Contains(a)
}

// peer is the node as its fellows see it. A family that the status lacks comes
// from the annotations (hard case 12): the addresses in the nodes' networks if
// there is any, for the annotations list storage networks and the like too; first one in
// the VIPs' network, which the operator's own keepalived takes (baremetal-runtimecfg,
// getNodeIpForRequestedIpStack). So does an address in a network of VIPs that the status has
// none in. A VIP never is a node's address.
func (r *record) peer(spec *v1alpha1.ClusterConfigSpec) v1alpha1.Peer {
	p := v1alpha1.Peer{Name: r.Name, Role: role(r.Labels), Labels: r.Labels.only(selecting(spec))}
	for _, a := range r.Addresses {
		if !isVIP(spec, a) {
			p.Addresses = append(p.Addresses, a)
		}
	}
	// The rule asks for networks alone, and goes by those of that node.
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

// selecting says which labels decide what a node does: roles, and those that
// groups select their nodes by.
func selecting(spec *v1alpha1.ClusterConfigSpec) func(key string) bool {
	return func(key string) bool {
		return strings.HasPrefix(key, v1alpha1.RoleLabel("")) ||
			slices.ContainsFunc(spec.Groups, func(g v1alpha1.Group) bool { _, ok := g.NodeSelector[key]; return ok })
	}
}

func isVIP(spec *v1alpha1.ClusterConfigSpec, a netip.Addr) bool {
	return slices.ContainsFunc(spec.Groups, func(g v1alpha1.Group) bool { return slices.Contains(g.VIPs, a) })
}

// role is the pool that the labels say. Nodes of a custom pool have the
// worker's label too; nodes with no such label are taken for workers, and so are
// those whose label is no name of a pool (hard case 37). The bootstrap host is no
// Node.
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
	if custom != "" {
		return custom
	}
	return v1alpha1.RoleWorker
}
