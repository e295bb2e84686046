package adopt

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/internal/day2/importer"
	"github.com/vipgen/vipgen/internal/lists"
)

// addressNotes adds a note for the nodes whose address would differ, by the export. An address that
// kubelet's drop-in has, or the Node alone, stays whatever the hints are; only a VIP is never a node's.
func (p *Plan) addressNotes() {
	vips := lists.FlatMap(p.cluster.Config.Spec.Groups, func(g v1alpha1.Group) []netip.Addr { return g.VIPs })
	for _, n := range p.observed.Nodes {
		for i, has := range n.Addresses {
			family := func(a netip.Addr) bool { return a.Is4() == has.Is4() && !slices.Contains(vips, a) }
			first := slices.IndexFunc(n.Addresses, family) == i
			switch better := p.newAddress(n, has, vips); {
			case slices.Contains(vips, has):
				p.Notes = append(p.Notes, fmt.Sprintf("node %.100q is listed at %v, which is a VIP: vipgen-agent gives it another address. Correct it before the roll-out, with 'vipgen-agent node-ip show' on the node", n.Name, has))
			case first && better.IsValid():
				p.Notes = append(p.Notes, fmt.Sprintf("node %.100q is listed at %v first, and vipgen-agent would choose %v, at which it is also listed: the operator chooses no addresses on platform %s of %s, so that kubelet's drop-in has neither. Write /etc/systemd/system/kubelet.service.d/20-nodenet.conf with KUBELET_NODE_IP=%v first", n.Name, has, better, p.observed.Platform, p.Release, has))
			}
		}
	}
}

// newAddress returns the address that is chosen for a node without a drop-in in place of its
// current one, among those that it is listed at; the zero value if it stays, or if the operator
// has written one.
func (p *Plan) newAddress(n importer.Node, has netip.Addr, vips []netip.Addr) netip.Addr {
	if !strings.EqualFold(p.observed.Platform, "external") || assets.AtLeast(p.Release, "4.17") {
		return netip.Addr{}
	}
	for _, vip := range vips {
		for _, h := range n.Host {
			if h.Contains(vip) && slices.Contains(n.Addresses, h.Addr()) && vip.Is4() == has.Is4() && !slices.Contains(vips, h.Addr()) && !h.Contains(has) {
				return h.Addr()
			}
		}
	}
	return netip.Addr{}
}
