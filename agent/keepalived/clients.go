package keepalived

import (
	"slices"

	"github.com/vipgen/vipgen/agent/tickle"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// tickled returns the VIPs of a decision whose client lists the peers receive. In
// multicast mode there are no peers.
func tickled(d *decision) (out []tickle.VIP) {
	s := &d.cluster.Spec
	for _, i := range d.conf.Instances {
		if len(i.Peers) == 0 {
			continue
		}
		v := tickle.VIP{Address: i.VIP.Addr(), Source: i.Source, Peers: i.Peers}
		if slices.ContainsFunc(s.Groups, func(g v1alpha1.Group) bool {
			return g.Role == v1alpha1.GroupAPI && slices.Contains(g.VIPs, v.Address)
		}) {
			v.Redirected = map[uint16]uint16{uint16(s.Ports.HAProxy): uint16(s.Ports.API)}
		}
		out = append(out, v)
	}
	return out
}
