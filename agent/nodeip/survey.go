package nodeip

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// Rejected is an address that is not the node's own.
type Rejected struct {
	Interface string     `json:"interface"`
	Address   netip.Addr `json:"address"`
	Why       string     `json:"why"`
}

// survey is what a snapshot comes to.
type survey struct {
	// interfaces have every address that is, or may soon be, the node's own.
	interfaces []v1alpha1.Interface
	// pending are those that the kernel still checks.
	pending  []netip.Addr
	rejected []Rejected
}

func look(s Snapshot, vips []netip.Addr) survey {
	var out survey
	default4, default6 := s.defaultLink(vips, true), s.defaultLink(vips, false)
	for _, l := range s.Links {
		face := v1alpha1.Interface{Name: l.Name, DefaultRoute4: l.Index == default4, DefaultRoute6: l.Index == default6}
		for _, a := range s.on(l) {
			why := cmp.Or(l.unfit(), a.unfit(l.Name, vips))
			switch {
			case why != "":
				out.rejected = append(out.rejected, Rejected{l.Name, a.Prefix.Addr(), why})
				continue
			case a.Tentative:
				out.pending = append(out.pending, a.Prefix.Addr())
			}
			face.Addresses = append(face.Addresses, effective(a, s.Routes))
		}
		if len(face.Addresses) > 0 {
			out.interfaces = append(out.interfaces, face)
		}
	}
	slices.SortStableFunc(out.interfaces, order)
	return out
}

// order puts interfaces with a default route first, so that they win where two
// are in the same network, then goes by name.
func order(a, b v1alpha1.Interface) int {
	return cmp.Or(defaults(b)-defaults(a), cmp.Compare(a.Name, b.Name))
}

func defaults(i v1alpha1.Interface) (n int) {
	for _, has := range []bool{i.DefaultRoute4, i.DefaultRoute6} {
		if has {
			n++
		}
	}
	return n
}

// usable are the interfaces without the addresses that are pending.
func (s survey) usable() []v1alpha1.Interface {
	var out []v1alpha1.Interface
	for _, face := range s.interfaces {
		face.Addresses = slices.DeleteFunc(slices.Clone(face.Addresses), func(p netip.Prefix) bool {
			return slices.Contains(s.pending, p.Addr())
		})
		if len(face.Addresses) > 0 {
			out = append(out, face)
		}
	}
	return out
}

// on returns the addresses of a link, the likeliest first: IPv4 before IPv6, in
// each what the default route asks for, what is in the gateway's network, what
// is in a network at all; the kernel's order among equals. What is tentative
// comes after all of its family that is not.
func (s Snapshot) on(l Link) []Address {
	var out []Address
	for _, a := range s.Addresses {
		if a.Link == l.Index {
			out = append(out, a)
		}
	}
	slices.SortStableFunc(out, func(a, b Address) int { return cmp.Compare(s.rank(a), s.rank(b)) })
	return out
}

func (s Snapshot) rank(a Address) int {
	p := effective(a, s.Routes)
	rank := 2
	if p.IsSingleIP() {
		rank = 3
	}
	for _, r := range s.Routes {
		switch {
		case r.Link != a.Link || !r.isDefault():
		case r.Source == p.Addr():
			rank = min(rank, 0)
		case r.Gateway.IsValid() && p.Contains(r.Gateway):
			rank = min(rank, 1)
		}
	}
	if a.Tentative {
		rank += 10
	}
	if p.Addr().Is6() {
		rank += 100
	}
	return rank
}

// defaultLink returns the index of the link with the default route of a family
// that has the lowest metric, among the links with an address of that family
// that is or may become the node's own; 0 for none.
func (s Snapshot) defaultLink(vips []netip.Addr, is4 bool) int {
	best := Route{}
	for _, r := range s.Routes {
		if !r.isDefault() || r.Destination.Addr().Is4() != is4 || !s.hasOwn(r.Link, vips, is4) {
			continue
		}
		if best.Link == 0 || r.Metric < best.Metric || r.Metric == best.Metric && r.Link < best.Link {
			best = r
		}
	}
	return best.Link
}

func (s Snapshot) hasOwn(index int, vips []netip.Addr, is4 bool) bool {
	for _, l := range s.Links {
		if l.Index != index || l.unfit() != "" {
			continue
		}
		for _, a := range s.Addresses {
			if a.Link == index && a.Prefix.Addr().Is4() == is4 && a.unfit(l.Name, vips) == "" {
				return true
			}
		}
	}
	return false
}
