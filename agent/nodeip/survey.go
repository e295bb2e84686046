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
	// interfaces have every address that is, or may soon be, the node's own. down are the
	// names of those that are down.
	interfaces []v1alpha1.Interface
	down       []string
	// routes are the default routes of links that are there, by metric and link.
	routes []defaultRoute
	// pending are those that the kernel still checks.
	pending  []netip.Addr
	rejected []Rejected
}

// look goes through the interfaces for which unfit says nothing, with their addresses in an
// order.
func look(s Snapshot, vips []netip.Addr, unfit func(Link) string, in func(Snapshot, Link) []Address) survey {
	var out survey
	default4, default6 := s.defaultLink(vips, unfit, true), s.defaultLink(vips, unfit, false)
	for _, l := range s.Links {
		face := v1alpha1.Interface{Name: l.Name, DefaultRoute4: l.Index == default4, DefaultRoute6: l.Index == default6}
		if !l.Up {
			out.down = append(out.down, l.Name)
		}
		for _, a := range in(s, l) {
			why := cmp.Or(unfit(l), a.unfit(l.Name, vips))
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
	out.routes = s.defaultRoutes()
	return out
}

// defaultRoute is a default route of a family over a link.
type defaultRoute struct {
	link    string
	family  Family
	gateway netip.Addr
}

// defaultRoutes returns the default routes of both families, by metric and link.
func (s Snapshot) defaultRoutes() (out []defaultRoute) {
	routes := slices.DeleteFunc(slices.Clone(s.Routes), func(r Route) bool { return !r.isDefault() })
	slices.SortStableFunc(routes, func(a, b Route) int { return cmp.Or(a.Metric-b.Metric, a.Link-b.Link) })
	for _, r := range routes {
		if i := slices.IndexFunc(s.Links, func(l Link) bool { return l.Index == r.Link }); i >= 0 {
			out = append(out, defaultRoute{s.Links[i].Name, familyOf(r.Destination.Addr()), r.Gateway})
		}
	}
	return out
}

// defaultRoutes returns the default routes of a family before those of the other one.
func (s survey) defaultRoutes(f Family) []defaultRoute {
	out := slices.Clone(s.routes)
	slices.SortStableFunc(out, func(a, b defaultRoute) int {
		switch {
		case a.family == b.family:
			return 0
		case a.family == f:
			return -1
		}
		return 1
	})
	return out
}

func (s survey) onlyUp() survey {
	s.interfaces = slices.DeleteFunc(slices.Clone(s.interfaces), func(i v1alpha1.Interface) bool { return slices.Contains(s.down, i.Name) })
	return s
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

// listed returns the addresses of a link in the kernel's order, IPv4 first. What is tentative
// comes after all of its family that is not.
func (s Snapshot) listed(l Link) []Address {
	var out []Address
	for _, a := range s.Addresses {
		if a.Link == l.Index {
			out = append(out, a)
		}
	}
	slices.SortStableFunc(out, func(a, b Address) int { return standing(a) - standing(b) })
	return out
}

func standing(a Address) (n int) {
	if a.Tentative {
		n++
	}
	if a.Prefix.Addr().Is6() {
		n += 2
	}
	return n
}

// on returns the addresses of a link, the likeliest first: IPv4 before IPv6, in
// each what the default route asks for, what is in the gateway's network, what
// is in a network at all; the kernel's order among equals. What is tentative
// comes after all of its family that is not.
func (s Snapshot) on(l Link) []Address {
	out := s.listed(l)
	slices.SortStableFunc(out, func(a, b Address) int {
		return cmp.Or(standing(a)-standing(b), s.rank(a)-s.rank(b))
	})
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
	return rank
}

// defaultLink returns the index of the link with the default route of a family
// that has the lowest metric, among the links with an address of that family
// that is or may become the node's own; 0 for none.
func (s Snapshot) defaultLink(vips []netip.Addr, unfit func(Link) string, is4 bool) int {
	best := Route{}
	for _, r := range s.Routes {
		if !r.isDefault() || r.Destination.Addr().Is4() != is4 || !s.hasOwn(r.Link, vips, unfit, is4) {
			continue
		}
		if best.Link == 0 || r.Metric < best.Metric || r.Metric == best.Metric && r.Link < best.Link {
			best = r
		}
	}
	return best.Link
}

func (s Snapshot) hasOwn(index int, vips []netip.Addr, unfit func(Link) string, is4 bool) bool {
	for _, l := range s.Links {
		if l.Index != index || unfit(l) != "" {
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
