package nodeip

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// services is the interface with the addresses of all services, which kube-proxy creates
// on every node.
const services = "kube-ipvs0"

// masquerade is the network of fd69::2, which OVN-Kubernetes adds to br-ex of every node
// to answer pods that reach services on their own node. The IPv4 counterpart,
// 169.254.0.0/17, is link-local already.
var masquerade = netip.MustParsePrefix("fd69::/112")

// unfit returns why a link cannot have the node's address; empty if it can. As for the
// operator, its name and state do not matter (hard case 48).
func (l Link) unfit() string {
	if l.Loopback {
		return "a loopback interface"
	}
	return ""
}

// unconfigured returns why daemons cannot be configured with a link; empty if they can.
func (l Link) unconfigured() string {
	switch {
	case l.Loopback:
		return "a loopback interface"
	case !l.Up:
		return "an interface that is down"
	case l.Name == services:
		return "an interface with the addresses of services"
	case !v1alpha1.ValidInterface(l.Name):
		// Linux takes almost any byte; daemons' configurations do not (hard case 37).
		return "an interface whose name has other characters than letters, digits and . _ : -"
	}
	return ""
}

// unfit returns why an address on the named link is not the node's own (hard case 10);
// empty if it is. A tentative address may become it.
func (a Address) unfit(link string, vips []netip.Addr) string {
	addr := a.Prefix.Addr()
	switch {
	case v1alpha1.UsableAddress(addr) != "":
		return v1alpha1.UsableAddress(addr)
	case slices.Contains(vips, addr), a.Label == v1alpha1.VIPLabel, strings.HasSuffix(a.Label, ":"+v1alpha1.VIPLabel):
		return "a VIP"
	case isEgress(a.Label, link):
		return "an egress IP"
	case masquerade.Contains(addr):
		return "an address that OVN-Kubernetes uses inside the node"
	case a.DADFailed:
		return "an address that another host has too"
	case a.Deprecated:
		return "a deprecated address"
	case a.Temporary:
		return "a temporary address"
	}
	return ""
}

// isEgress reports whether a label marks an egress IP: OVN-Kubernetes labels it
// "<link>ovn" on interfaces other than br-ex, OpenShift SDN "<link>:eip".
func isEgress(label, link string) bool {
	return label == link+"ovn" || strings.HasSuffix(label, ":eip")
}

// effective returns the address with the prefix length of its network. DHCPv6 assigns
// /128 addresses; the network is then the one that a router advertised on the link (RFC
// 5942 section 4).
func effective(a Address, routes []Route) netip.Prefix {
	best := a.Prefix
	if !a.Prefix.Addr().Is6() || !a.Prefix.IsSingleIP() {
		return best
	}
	for _, r := range routes {
		onLink := r.Advertised && r.Link == a.Link && !r.Gateway.IsValid() && !r.isDefault()
		narrower := best.IsSingleIP() || r.Destination.Bits() > best.Bits()
		if onLink && narrower && !r.Destination.IsSingleIP() && r.Destination.Contains(a.Prefix.Addr()) {
			best = netip.PrefixFrom(a.Prefix.Addr(), r.Destination.Bits())
		}
	}
	return best
}
