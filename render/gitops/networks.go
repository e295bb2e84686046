package gitops

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// networks takes the cluster's networks from fields below a path.
func (r *reader) networks(at string, fields ...string) {
	r.machineNetwork = at + ".machineNetwork"
	for _, field := range append(fields, "machineNetwork", "clusterNetwork", "networkType") {
		r.install.Copy("networking."+field, r.main, at+"."+field)
	}
}

// machineNetworks fills in the machine networks where the object has none: the assisted
// installer then takes the networks of the hosts that the VIPs are in, known here from static
// addresses alone. It reports whether any are known: where hosts use DHCP, the networks that
// the installer would take by default are not those of the nodes, and the VIPs stand in for
// them while the rest is read.
func (r *reader) machineNetworks() bool {
	const to = "networking.machineNetwork"
	if r.install.Document().Has(to) {
		return true
	}
	var found []netip.Prefix
	for _, vip := range r.vips() {
		found = r.networksOf(found, vip)
	}
	known := len(found) > 0
	if !known {
		for _, vip := range r.vips() {
			found = append(found, netip.PrefixFrom(vip, vip.BitLen()))
		}
	}
	for i, n := range found {
		r.install.Put(fmt.Sprintf("%s[%d].cidr", to, i), n.String(), r.main, r.machineNetwork)
	}
	return known
}

// vips returns the valid VIPs of the object, each once.
func (r *reader) vips() []netip.Addr {
	var out []netip.Addr
	add := func(field string) {
		if a, err := netip.ParseAddr(r.main.Text(field)); err == nil && v1alpha1.UsableAddress(a) == "" && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	for _, name := range []string{".apiVIP", ".ingressVIP"} {
		for i := range r.main.Len(r.spec + name + "s") {
			add(fmt.Sprintf("%s%ss[%d]", r.spec, name, i))
		}
		add(r.spec + name)
	}
	return out
}

// networksOf appends the network of the node in whose network a VIP is.
func (r *reader) networksOf(found []netip.Prefix, vip netip.Addr) []netip.Prefix {
	for _, h := range r.nodes.Hosts {
		for _, a := range h.Addresses {
			if n := a.Masked(); n.Contains(vip) && !slices.Contains(found, n) {
				return append(found, n)
			}
		}
	}
	return found
}
