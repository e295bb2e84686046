package membership

import (
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/agent/guard"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// Senders returns the hosts whose adverts keepalived accepts for an instance. nodes are
// all other nodes of the cluster.
func Senders(i *keepalived.Instance, nodes []v1alpha1.Peer) []guard.Sender {
	ipv6 := i.VIP.Addr().Is6()
	if len(i.Peers) == 0 {
		to := vrrp.MulticastGroup(ipv6)
		if i.QuietGroup != "" {
			to = netip.MustParseAddr(i.QuietGroup)
		}
		// keepalived checks the TTL itself. In IPv6 the source is no node address, and in
		// IPv4 the first one of the link.
		return []guard.Sender{{To: to, FullTTL: true}}
	}
	switch {
	case i.OnLink: // keepalived requires it, too
		return []guard.Sender{{From: i.Peers, FullTTL: true}}
	case i.FullTTL: // the bootstrap's address is not known
		return []guard.Sender{{FullTTL: true}}
	}
	// Any node: nodes with the operator's keepalived have another view of the group. The
	// TTL of their packets depends on version and family.
	from := slices.Clone(i.Peers)
	from = append(from, lists.Filter(Addresses(nodes), func(a netip.Addr) bool { return a.Is6() == ipv6 })...)
	switch {
	case i.AllKnown:
		return []guard.Sender{{From: from}}
	case ipv6:
		return []guard.Sender{{}} // keepalived 2.2 sends with the link's own hop limit
	}
	return []guard.Sender{{From: from}, {FullTTL: true}}
}

func Addresses(peers []v1alpha1.Peer) (out []netip.Addr) {
	for _, p := range peers {
		out = append(append(out, p.Addresses...), p.Elsewhere...)
	}
	return out
}
