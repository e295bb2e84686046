package facts

import (
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/agent/nodes"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// merge adds the peers that were known when cluster.yaml was rendered to those
// that are listed by now, which are right where both know one: by its name, or by
// an address, which another node may have taken over (hard case 15). This one,
// called self and with addresses of its own, is no peer.
//
// The host that bootstraps is a peer beside the node that it becomes, which has
// its address. It and hosts whose names are made up get another name where a node is
// called as they are (hard case 40).
func merge(self string, own []netip.Addr, listed, known []v1alpha1.Peer) []v1alpha1.Peer {
	out := slices.Clone(listed)
	for _, k := range known {
		there := func(p v1alpha1.Peer) bool {
			return bootstrap(p) == bootstrap(k) && (p.Name == k.Name || share(p.Addresses, k.Addresses))
		}
		named := func(p v1alpha1.Peer) bool { return p.Name == k.Name }
		for (k.Unnamed || bootstrap(k)) && (k.Name == self || slices.ContainsFunc(listed, named)) {
			k.Name += "-host"
		}
		if k.Name != self && !share(k.Addresses, own) && !slices.ContainsFunc(listed, there) {
			out = append(out, k)
		}
	}
	return out
}

// bootstraps brings the peers that were known beforehand in line with what is
// known of the bootstrap by now: the address that it is said to have comes before
// all others. It stays a peer when the cluster does without it: its provisioning
// service, and with it the API VIP, may outlive that.
func bootstraps(known []v1alpha1.Peer, b nodes.Bootstrap) []v1alpha1.Peer {
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
		for _, a := range p.Addresses {
			if a != b.Address {
				there.Addresses = append(there.Addresses, a)
			}
		}
	}
	return append(out, there)
}

func bootstrap(p v1alpha1.Peer) bool { return p.Role == v1alpha1.RoleBootstrap }

func share(a, b []netip.Addr) bool {
	return slices.ContainsFunc(a, func(x netip.Addr) bool { return slices.Contains(b, x) })
}
