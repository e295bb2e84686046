package guard

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
)

// Sender describes permitted packets of a group.
type Sender struct {
	// From are the permitted source addresses; all if empty.
	From []netip.Addr
	// To is the multicast group of the packets; the zero value means any destination.
	To netip.Addr
	// FullTTL permits only packets from the link, with an unreduced TTL or hop limit of
	// 255 (RFC 9568 section 5.1.1.3).
	FullTTL bool
}

// Group is a virtual router, identified like keepalived's by link, family and ID.
type Group struct {
	Interface string
	IPv6      bool
	RouterID  int
	// Senders are the permitted senders. Other packets of the group are dropped and
	// counted.
	Senders []Sender
}

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

// Merge returns each group once, sorted, with the senders of all entries with the same
// link, family and router ID.
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

// add adds a sender, merged with one of the same kind.
func add(to []Sender, s Sender) []Sender {
	from := slices.Clone(s.From)
	slices.SortFunc(from, netip.Addr.Compare)
	s.From = slices.Compact(from)
	for i, o := range to {
		if o.To != s.To || o.FullTTL != s.FullTTL {
			continue
		}
		if len(o.From) == 0 || len(s.From) == 0 {
			to[i].From = nil // any source
			return to
		}
		from := slices.Concat(o.From, s.From)
		slices.SortFunc(from, netip.Addr.Compare)
		to[i].From = slices.Compact(from)
		return to
	}
	return append(to, s)
}

// equal reports whether two results of Merge permit the same packets.
func equal(a, b []Group) bool {
	return slices.EqualFunc(a, b, func(a, b Group) bool {
		return a.key() == b.key() && slices.EqualFunc(a.Senders, b.Senders, func(a, b Sender) bool {
			return a.To == b.To && a.FullTTL == b.FullTTL && slices.Equal(a.From, b.From)
		})
	})
}

// maxLink is the maximum length of an interface name with its terminating zero.
const maxLink = 16

// validate returns an error for groups that no rule can express.
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
