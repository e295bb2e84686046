package nodeip

import (
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// isRemote reports whether the node is a remote worker (hard case 9), by the rules of the
// operator (isRemoteWorker and AddressesRouting in baremetal-runtimecfg): on bare metal,
// if none of its addresses is in the network of a VIP or a hint. On other platforms VIPs
// may be in networks without nodes (vSphere, hard case 11).
func (s survey) isRemote(spec *v1alpha1.ClusterConfigSpec, hints []netip.Addr) bool {
	wanted := slices.Concat(nodeVIPs(spec.Elected()), hints)
	if spec.Platform != "baremetal" || !spec.ByVRRP() || len(wanted) == len(hints) || len(s.interfaces) == 0 {
		return false
	}
	return !slices.ContainsFunc(s.interfaces, func(i v1alpha1.Interface) bool {
		return slices.ContainsFunc(i.Addresses, func(a netip.Prefix) bool { return slices.ContainsFunc(wanted, a.Contains) })
	})
}
