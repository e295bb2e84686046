package nodeip

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
)

// Rejected is an address that is not the node's own.
type Rejected struct {
	Interface string     `json:"interface"`
	Address   netip.Addr `json:"address"`
	Why       string     `json:"why"`
}

// survey holds the usable parts of a snapshot.
type survey struct {
	// interfaces are the interfaces with own addresses, tentative ones included. down
	// names those that are down.
	interfaces []v1alpha1.Interface
	down       []string
	// routes are the default routes over known links, by metric and link.
	routes []defaultRoute
	// pending are tentative addresses.
	pending  []netip.Addr
	rejected []Rejected
}

// newSurvey surveys the links for which unfit returns nothing, with their addresses in
// the order of in.
func newSurvey(s Snapshot, vips []netip.Addr, unfit func(Link) string, in func(Snapshot, Link) []Address) survey {
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

type defaultRoute struct {
	link    string
	family  Family
	gateway netip.Addr
}

// defaultRoutes returns the default routes of both families, by metric and link.
func (s Snapshot) defaultRoutes() (out []defaultRoute) {
	for _, r := range s.byMetric() {
		if i := slices.IndexFunc(s.Links, func(l Link) bool { return l.Index == r.Link }); i >= 0 {
			out = append(out, defaultRoute{s.Links[i].Name, familyOf(r.Destination.Addr()), r.Gateway})
		}
	}
	return out
}

// byMetric returns the default routes of both families, by metric and link.
func (s Snapshot) byMetric() []Route {
	out := lists.Filter(s.Routes, Route.isDefault)
	slices.SortStableFunc(out, func(a, b Route) int { return cmp.Or(a.Metric-b.Metric, a.Link-b.Link) })
	return out
}

// defaultRoutes returns all default routes, those of family f first.
func (s survey) defaultRoutes(f Family) []defaultRoute {
	other := func(r defaultRoute) bool { return r.family != f }
	return append(slices.DeleteFunc(slices.Clone(s.routes), other), lists.Filter(s.routes, other)...)
}

func (s survey) onlyUp() survey {
	s.interfaces = slices.DeleteFunc(slices.Clone(s.interfaces), func(i v1alpha1.Interface) bool { return slices.Contains(s.down, i.Name) })
	return s
}

// order sorts interfaces with a default route first, so that they win where two are in
// the same network, then by name.
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

// usable returns the interfaces without pending addresses.
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

// listed returns the addresses of a link in the kernel's order, IPv4 first, and tentative
// ones last in their family.
func (s Snapshot) listed(l Link) []Address {
	out := lists.Filter(s.Addresses, func(a Address) bool { return a.Link == l.Index })
	slices.SortStableFunc(out, func(a, b Address) int { return familyRank(a) - familyRank(b) })
	return out
}

func familyRank(a Address) (n int) {
	if a.Tentative {
		n++
	}
	if a.Prefix.Addr().Is6() {
		n += 2
	}
	return n
}

// on returns the addresses of a link by preference: IPv4 before IPv6, tentative ones last
// in their family; then the source of the default route, addresses in the gateway's
// network, addresses in any network; then the kernel's order.
func (s Snapshot) on(l Link) []Address {
	out := s.listed(l)
	slices.SortStableFunc(out, func(a, b Address) int {
		return cmp.Or(familyRank(a)-familyRank(b), s.rank(a)-s.rank(b))
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

// defaultLink returns the index of the link with the default route of a family and the
// lowest metric, among links with an own or tentative address of the family; 0 for none.
func (s Snapshot) defaultLink(vips []netip.Addr, unfit func(Link) string, is4 bool) int {
	for _, r := range s.byMetric() {
		if r.Destination.Addr().Is4() == is4 && s.hasOwn(r.Link, vips, unfit, is4) {
			return r.Link
		}
	}
	return 0
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
