package facts

import (
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/agent/nodelist"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
)

// merge adds the peers known when cluster.yaml was rendered to the listed ones. Listed
// peers take precedence over known ones with the same name or address, which another node
// may have taken over (hard case 15). This node, called self and with its own addresses,
// is no peer.
//
// The bootstrap host is a peer next to the node that it becomes, which has its address.
// It, and hosts with generated names, are renamed if a node has their name (hard case
// 40).
func merge(self string, own []netip.Addr, listed, known []v1alpha1.Peer) []v1alpha1.Peer {
	out := slices.Clone(listed)
	for _, k := range known {
		there := func(p v1alpha1.Peer) bool {
			return bootstrap(p) == bootstrap(k) && (p.Name == k.Name || haveCommon(p.Addresses, k.Addresses))
		}
		named := func(p v1alpha1.Peer) bool { return p.Name == k.Name }
		for (k.Unnamed || bootstrap(k)) && (k.Name == self || slices.ContainsFunc(listed, named)) {
			k.Name += "-host"
		}
		if k.Name != self && !haveCommon(k.Addresses, own) && !slices.ContainsFunc(listed, there) {
			out = append(out, k)
		}
	}
	return out
}

// bootstraps updates the known peers with the current address of the bootstrap, which
// comes first. The bootstrap stays a peer after the cluster no longer needs it: its
// provisioning service, and with it the API VIP, may outlive that.
func bootstraps(known []v1alpha1.Peer, b nodelist.Bootstrap) []v1alpha1.Peer {
	if !b.Address.IsValid() {
		return known
	}
	var out []v1alpha1.Peer
	there := v1alpha1.Peer{Name: v1alpha1.RoleBootstrap, Role: v1alpha1.RoleBootstrap, Addresses: []netip.Addr{b.Address}}
	for _, p := range known {
		if !bootstrap(p) {
			out = append(out, p)
			continue
		}
		there.Name = p.Name
		there.Addresses = append(there.Addresses, lists.Filter(p.Addresses, func(a netip.Addr) bool { return a != b.Address })...)
	}
	return append(out, there)
}

func bootstrap(p v1alpha1.Peer) bool { return p.Role == v1alpha1.RoleBootstrap }

func haveCommon(a, b []netip.Addr) bool {
	return slices.ContainsFunc(a, func(x netip.Addr) bool { return slices.Contains(b, x) })
}
