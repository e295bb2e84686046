package listener

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/lists"
)

// Router is a sender of adverts for an ID.
type Router struct {
	Interface string     `json:"interface"`
	Family    string     `json:"family"` // IPv4 or IPv6
	Version   int        `json:"version"`
	ID        int        `json:"id"`
	Priority  int        `json:"priority"`
	Interval  int        `json:"intervalMS"`
	Source    netip.Addr `json:"source"`
	// Mode is multicast, or unicast for adverts to this host only.
	Mode      string       `json:"mode"`
	Addresses []netip.Addr `json:"addresses"`
	Adverts   int          `json:"adverts"`
	// TTL is the lowest one received: routers drop adverts with less than 255.
	TTL int `json:"-"`
}

// Scanner listens for adverts on interfaces, before any packet filter, so that it also
// receives those that the guard drops.
type Scanner struct {
	// Interfaces names the interfaces to listen on.
	Interfaces []string

	links *Listener
	// members holds memberships in the multicast groups, one per family, and reads
	// nothing.
	members []*Listener
	// names maps interface indices to names.
	names map[int]string

	mu    sync.Mutex
	found map[string]*Router
}

// Open joins the multicast groups on the named interfaces, or on all that are up, not
// loopback and not part of another one, such as a bond. It needs CAP_NET_RAW. An address
// family that this host lacks is left out. The caller must Close the Scanner.
func Open(interfaces ...string) (*Scanner, error) {
	links, err := selectInterfaces(interfaces)
	if err != nil {
		return nil, err
	}
	s := &Scanner{names: map[int]string{}, found: map[string]*Router{}}
	for _, l := range links {
		s.Interfaces = append(s.Interfaces, l.Name)
		s.names[l.Index] = l.Name
	}
	failed := lists.Map([]bool{false, true}, func(ip6 bool) error { return s.join(links, ip6) })
	if len(s.members) == 0 {
		return nil, fmt.Errorf("listening for advertisements: %w", errors.Join(failed...))
	}
	if s.links, err = OnLinks(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func selectInterfaces(names []string) ([]net.Interface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("reading interfaces: %w", err)
	}
	out := slices.DeleteFunc(slices.Clone(all), func(l net.Interface) bool {
		if len(names) > 0 {
			return !slices.Contains(names, l.Name)
		}
		return l.Flags&net.FlagUp == 0 || l.Flags&net.FlagLoopback != 0 || hasMaster(l)
	})
	for _, name := range names {
		if !slices.ContainsFunc(out, func(l net.Interface) bool { return l.Name == name }) {
			have := lists.Map(all, func(l net.Interface) string { return l.Name })
			return nil, fmt.Errorf("no interface %q: this host has %s", name, strings.Join(have, ", "))
		}
	}
	if len(out) == 0 {
		return nil, errors.New("no interface is up")
	}
	return out, nil
}

// hasMaster reports whether an interface is part of another one, which receives its
// packets too.
func hasMaster(l net.Interface) bool {
	link, err := netlink.LinkByIndex(l.Index)
	return err == nil && link.Attrs().MasterIndex != 0
}

// join joins the group of a family on every link; one success is enough.
func (s *Scanner) join(links []net.Interface, ip6 bool) error {
	member, err := open(ip6)
	if err != nil {
		return err
	}
	var failed []error
	for _, l := range links {
		if err := member.join(&l, ip6); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", l.Name, err))
		}
	}
	if len(failed) == len(links) {
		return closeAfter(member, errors.Join(failed...))
	}
	s.members = append(s.members, member)
	return nil
}

// Close stops listening.
func (s *Scanner) Close() error {
	errs := lists.Map(s.members, (*Listener).Close)
	if s.links != nil {
		errs = append(errs, s.links.Close())
	}
	return errors.Join(errs...)
}

// Listen records adverts until ctx ends.
func (s *Scanner) Listen(ctx context.Context) error {
	for {
		r, err := s.links.Receive(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, unix.ENETDOWN): // one link is down; others continue
		case err != nil:
			return err
		default:
			s.record(&r)
		}
	}
}

func (s *Scanner) record(a *Received) {
	name, listened := s.names[a.Interface]
	if !listened {
		return
	}
	r := Router{Interface: name, Family: "IPv4", Version: a.Version, ID: int(a.RouterID), Priority: int(a.Priority),
		Interval: int(a.Interval.Milliseconds()), Source: a.Source, Mode: "multicast", Addresses: a.VIPs, TTL: a.TTL}
	if a.Source.Is6() {
		r.Family = "IPv6"
	}
	if !a.Destination.IsMulticast() {
		r.Mode = "unicast"
	}
	key := fmt.Sprint(r.Interface, " ", r.Family, " ", r.Version, " ", r.ID, " ", r.Mode, " ", r.Source)
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.found[key]; old != nil {
		r.Adverts, r.TTL = old.Adverts, min(old.TTL, r.TTL)
	}
	r.Adverts++
	s.found[key] = &r
}

// Routers returns the routers seen so far, by interface, ID, family, version and source.
func (s *Scanner) Routers() []Router {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []Router{}
	for _, r := range s.found {
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b Router) int {
		return cmp.Or(strings.Compare(a.Interface, b.Interface), cmp.Compare(a.ID, b.ID), strings.Compare(a.Family, b.Family),
			cmp.Compare(a.Version, b.Version), a.Source.Compare(b.Source), strings.Compare(a.Mode, b.Mode))
	})
	return out
}
