package guard

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
)

// Sender says which packets of a group are let through.
type Sender struct {
	// From are the addresses that they may come from; without any, it may be all.
	From []netip.Addr
	// To is the multicast group that they are sent to; the zero value is for any
	// destination.
	To netip.Addr
	// FullTTL lets those alone through that come from the link: no router has
	// taken one from their TTL, or hop limit, of 255 (RFC 9568 section 5.1.1.3).
	FullTTL bool
}

// Group is a virtual router, as keepalived tells them apart: by link, family and ID.
type Group struct {
	Interface string
	IPv6      bool
	RouterID  int
	// Senders are those whose packets are let through. All other packets of the
	// group are dropped, and counted.
	Senders []Sender
}

// key is what tells the group from others.
func (g *Group) key() key { return key{g.Interface, g.IPv6, g.RouterID} }

type key struct {
	link   string
	ipv6   bool
	router int
}

func (k key) compare(o key) int {
	return cmp.Or(cmp.Compare(k.link, o.link), cmp.Compare(k.family(), o.family()), cmp.Compare(k.router, o.router))
}

func (k key) family() string {
	if k.ipv6 {
		return "IPv6"
	}
	return "IPv4"
}

// Merge gives each group once, sorted, with the senders of all that have its link,
// family and router ID.
func Merge(lists ...[]Group) []Group {
	var out []Group
	for _, g := range slices.Concat(lists...) {
		i, found := slices.BinarySearchFunc(out, g.key(), func(o Group, k key) int { return o.key().compare(k) })
		if !found {
			out = slices.Insert(out, i, Group{Interface: g.Interface, IPv6: g.IPv6, RouterID: g.RouterID})
		}
		for _, s := range g.Senders {
			out[i].Senders = add(out[i].Senders, s)
		}
	}
	return out
}

// add puts a sender to others such that each kind of them is there once.
func add(to []Sender, s Sender) []Sender {
	from := slices.Clone(s.From)
	slices.SortFunc(from, netip.Addr.Compare)
	s.From = slices.Compact(from)
	for i, o := range to {
		if o.To != s.To || o.FullTTL != s.FullTTL {
			continue
		}
		if len(o.From) == 0 || len(s.From) == 0 {
			to[i].From = nil // anybody
			return to
		}
		from := slices.Concat(o.From, s.From)
		slices.SortFunc(from, netip.Addr.Compare)
		to[i].From = slices.Compact(from)
		return to
	}
	return append(to, s)
}

// equal says whether two lists that come from Merge let the same through.
func equal(a, b []Group) bool {
	return slices.EqualFunc(a, b, func(a, b Group) bool {
		return a.key() == b.key() && slices.EqualFunc(a.Senders, b.Senders, func(a, b Sender) bool {
			return a.To == b.To && a.FullTTL == b.FullTTL && slices.Equal(a.From, b.From)
		})
	})
}

// maxLink is the longest name of an interface, with the zero byte that ends it.
const maxLink = 16

// validate reports what no rule can be made of.
func validate(groups []Group) error {
	for i := range groups {
		g := &groups[i]
		if g.Interface == "" || len(g.Interface) >= maxLink || g.RouterID < 1 || g.RouterID > 255 {
			return fmt.Errorf("no guard for router ID %d on interface %q", g.RouterID, g.Interface)
		}
		for _, s := range g.Senders {
			for _, a := range s.From {
				if a.Is6() != g.IPv6 {
					return fmt.Errorf("no guard for %v, which is not %s", a, g.key().family())
				}
			}
			if s.To.IsValid() && s.To.Is6() != g.IPv6 {
				return fmt.Errorf("no guard for %v, which is not %s", s.To, g.key().family())
			}
		}
	}
	return nil
}
