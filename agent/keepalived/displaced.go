package keepalived

import (
	"net/netip"
	"slices"
	"time"

	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// displacedTime is how long a node stays out, at most, because of where the
// cluster lists it. kubelet reports another address within seconds, but where all
// nodes have another one at once it may need the VIP to do so.
const displacedTime = time.Minute

// displacement keeps a node out whose address is not the listed one (hard case
// 15): the holder sends its adverts to where the node was, so that it would hear
// nothing and hold the VIP beside it.
type displacement struct{ since time.Time }

// wait says for how much longer the node is to stay out.
func (d *displacement) wait(now time.Time, displaced bool) time.Duration {
	if !displaced {
		d.since = time.Time{}
		return 0
	}
	if d.since.IsZero() {
		d.since = now
	}
	return max(displacedTime-now.Sub(d.since), 0)
}

// displaced says whether adverts to one of the instances, which are unicast, go
// to an address that is none of the node's.
func displaced(f *facts.Facts, instances []keepalived.Instance) bool {
	return slices.ContainsFunc(instances, func(i keepalived.Instance) bool {
		listed := false
		for _, a := range f.Listed {
			if a.Is6() != i.VIP.Addr().Is6() {
				continue
			}
			if has(f, a) {
				return false
			}
			listed = true
		}
		return listed && len(i.Peers) > 0
	})
}

// deaf says whether adverts to one of the instances, which are unicast, go to an
// address that is not among those that the node has now.
func deaf(instances []keepalived.Instance, have []netip.Addr) bool {
	return slices.ContainsFunc(instances, func(i keepalived.Instance) bool {
		return len(i.Peers) > 0 && !slices.Contains(have, i.Source)
	})
}

// sources are the addresses, by instance, at which the others know the node.
type sources map[string]netip.Addr

// moved notes where unicast instances are heard from now on, and says whether one of
// them was at an address before that the node does not have any more. An address that
// only went away for a while, as with a link that was down, is no other one.
func (s *sources) moved(instances []keepalived.Instance, have []netip.Addr) (moved bool) {
	if *s == nil {
		*s = sources{}
	}
	for _, i := range instances {
		if len(i.Peers) == 0 {
			continue
		}
		was, known := (*s)[i.Name]
		moved = moved || known && was != i.Source && !slices.Contains(have, was)
		(*s)[i.Name] = i.Source
	}
	return moved
}

// has says whether an address is one of the node's own.
func has(f *facts.Facts, a netip.Addr) bool { return slices.Contains(own(f), a) }

// own are the addresses of the node.
func own(f *facts.Facts) (out []netip.Addr) {
	for _, i := range f.Node.Interfaces {
		for _, p := range i.Addresses {
			out = append(out, p.Addr())
		}
	}
	return out
}
