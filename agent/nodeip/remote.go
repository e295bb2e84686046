package nodeip

import (
	"net/netip"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// isRemote says whether the node is a remote worker (hard case 9): no family
// has it in a network with a VIP, and the nodes have several networks of a family
// with a VIP in one of them, so that it can be in another one on purpose. With a
// single one, the VIPs are elsewhere (vSphere, hard case 11), not the node.
func isRemote(addresses []Chosen, interfaces []v1alpha1.Interface, spec *v1alpha1.ClusterConfigSpec) bool {
	if spec.LoadBalancer != v1alpha1.LoadBalancerInCluster {
		return false // the nodes hold no VIPs
	}
	networks := spec.NodeNetworks(interfaces)
	remote := false
	for _, vip := range whereNodesAre(spec) {
		for _, a := range addresses {
			if !a.Found() || familyOf(vip) != a.Family {
				continue
			}
			if shareNetwork(a.Address, vip, networks) {
				return false
			}
			remote = remote || v1alpha1.InNetworks(networks, vip) && several(a.Family, networks)
		}
	}
	return remote
}

// shareNetwork says whether an address and a VIP are in one network: that of
// the interface, or the same one of the nodes'.
func shareNetwork(address netip.Prefix, vip netip.Addr, networks []netip.Prefix) bool {
	if address.Contains(vip) {
		return true
	}
	a, ok := narrowest(address.Addr(), networks)
	v, ok2 := narrowest(vip, networks)
	return ok && ok2 && a == v
}

func narrowest(a netip.Addr, networks []netip.Prefix) (best netip.Prefix, ok bool) {
	for _, n := range networks {
		if n.Contains(a) && (!ok || n.Bits() > best.Bits()) {
			best, ok = n, true
		}
	}
	return best, ok
}

func several(f Family, networks []netip.Prefix) bool {
	n := 0
	for _, p := range networks {
		if familyOf(p.Addr()) == f {
			n++
		}
	}
	return n > 1
}
