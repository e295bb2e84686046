package gitops

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/api/problem"
)

// machineNetworks fills in the cluster's where the object has none: the assisted
// installer then takes the networks of the hosts that the VIPs are in, which is
// known here from static addresses alone.
func (r *reader) machineNetworks(field string) {
	if r.main.Len(field) > 0 || r.install.Document().Has("networking.machineNetwork") {
		return
	}
	var found []netip.Prefix
	for _, vips := range []string{"spec.apiVIPs", "spec.ingressVIPs"} {
		for i := range r.main.Len(vips) {
			found = r.networksOf(found, r.main.Text(fmt.Sprintf("%s[%d]", vips, i)))
		}
	}
	for _, vip := range []string{"spec.apiVIP", "spec.ingressVIP"} {
		found = r.networksOf(found, r.main.Text(vip))
	}
	for i, n := range found {
		r.install.Put(fmt.Sprintf("networking.machineNetwork[%d].cidr", i), n.String(), r.main, field)
	}
	if len(found) == 0 {
		r.addAs("networking", r.main, problem.MissingField, field, "nothing", "the networks of the nodes",
			"without them the installation asks the hosts; no static address of a node is in the network of a VIP")
	}
}

// networksOf adds the network of a node that holds a VIP.
func (r *reader) networksOf(found []netip.Prefix, vip string) []netip.Prefix {
	addr, err := netip.ParseAddr(vip)
	if err != nil {
		return found
	}
	for _, h := range r.nodes.Hosts {
		for _, a := range h.Addresses {
			if n := a.Masked(); n.Contains(addr) && !slices.Contains(found, n) {
				return append(found, n)
			}
		}
	}
	return found
}
