package vrrp

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
	"syscall"

	"github.com/mdlayher/socket"
	"github.com/vishvananda/netlink"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
)

// Groups that adverts are sent to: RFC 9568, section 5.1.
var (
	group4 = net.IPv4(224, 0, 0, 18)
	group6 = net.ParseIP("ff02::12")
)

// Router is a sender of adverts for one ID, as it was seen.
type Router struct {
	Interface string     `json:"interface"`
	Family    string     `json:"family"` // IPv4 or IPv6
	Version   int        `json:"version"`
	ID        int        `json:"id"`
	Priority  int        `json:"priority"`
	Interval  int        `json:"intervalMS"`
	Source    netip.Addr `json:"source"`
	// Mode is multicast, or unicast of adverts to this host alone.
	Mode      string       `json:"mode"`
	Addresses []netip.Addr `json:"addresses"`
	Adverts   int          `json:"adverts"`
}

// Scanner listens for adverts on interfaces. It takes them from the links, before any
// packet filter: also those that the guard keeps from keepalived.
type Scanner struct {
	// Interfaces are those listened on.
	Interfaces []string

	// four and six are members of the multicast groups, and read nothing.
	four, six net.PacketConn
	links     *socket.Conn
	// names of interfaces by their index.
	names map[int]string

	mu    sync.Mutex
	found map[string]*Router
}

// Open joins the groups that adverts are sent to, on the named interfaces or on
// all that are up, are not loopback and are not part of another one, as the links of a
// bond are. It takes CAP_NET_RAW. A family that this host does not have is left out.
// The caller must Close it.
func Open(interfaces ...string) (*Scanner, error) {
	links, err := chosen(interfaces)
	if err != nil {
		return nil, err
	}
	s := &Scanner{names: map[int]string{}, found: map[string]*Router{}}
	for _, l := range links {
		s.Interfaces = append(s.Interfaces, l.Name)
		s.names[l.Index] = l.Name
	}
	err4, err6 := s.open4(links), s.open6(links)
	if s.four == nil && s.six == nil {
		return nil, fmt.Errorf("listening for adverts: %w", errors.Join(err4, err6))
	}
	if s.links, err = openLinks(); err != nil {
		return nil, errors.Join(fmt.Errorf("listening for adverts: %w", privileged(err)), s.Close())
	}
	return s, nil
}

func chosen(names []string) ([]net.Interface, error) {
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
			var have []string
			for _, l := range all {
				have = append(have, l.Name)
			}
			return nil, fmt.Errorf("no interface %q: this host has %s", name, strings.Join(have, ", "))
		}
	}
	if len(out) == 0 {
		return nil, errors.New("no interface is up")
	}
	return out, nil
}

// hasMaster says whether an interface is part of another one, which has its packets too.
func hasMaster(l net.Interface) bool {
	link, err := netlink.LinkByIndex(l.Index)
	return err == nil && link.Attrs().MasterIndex != 0
}

func (s *Scanner) open4(links []net.Interface) error {
	c, err := net.ListenPacket("ip4:112", "0.0.0.0")
	if err != nil {
		return privileged(err)
	}
	if err := join(ipv4.NewPacketConn(c), links, group4); err != nil {
		return errors.Join(err, c.Close())
	}
	s.four = c
	return nil
}

func (s *Scanner) open6(links []net.Interface) error {
	c, err := net.ListenPacket("ip6:112", "::")
	if err != nil {
		return privileged(err)
	}
	if err := join(ipv6.NewPacketConn(c), links, group6); err != nil {
		return errors.Join(err, c.Close())
	}
	s.six = c
	return nil
}

// join has a socket hear a group on every link that can; one is enough.
func join(c interface {
	JoinGroup(*net.Interface, net.Addr) error
}, links []net.Interface, group net.IP) error {
	var failed []error
	for _, l := range links {
		if err := c.JoinGroup(&l, &net.IPAddr{IP: group}); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", l.Name, err))
		}
	}
	if len(failed) < len(links) {
		return nil
	}
	return errors.Join(failed...)
}

func privileged(err error) error {
	if errors.Is(err, syscall.EPERM) {
		return fmt.Errorf("%w: raw sockets take root, or the capability NET_RAW", err)
	}
	return err
}

// Close stops listening.
func (s *Scanner) Close() error {
	var errs []error
	if s.four != nil {
		errs = append(errs, s.four.Close())
	}
	if s.six != nil {
		errs = append(errs, s.six.Close())
	}
	if s.links != nil {
		errs = append(errs, s.links.Close())
	}
	return errors.Join(errs...)
}

// Listen takes adverts until ctx is done.
func (s *Scanner) Listen(ctx context.Context) error {
	buffer := make([]byte, 4096) // an advert has 255 addresses at most
	for {
		n, from, err := s.links.Recvfrom(ctx, buffer, 0)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, unix.ENETDOWN): // one of the links; others go on
			continue
		case err != nil:
			return fmt.Errorf("reading adverts: %w", err)
		}
		link, ok := from.(*unix.SockaddrLinklayer)
		if !ok || link.Pkttype == unix.PACKET_OUTGOING || link.Pkttype == unix.PACKET_OTHERHOST {
			continue
		}
		if p, ok := parse(buffer[:n]); ok {
			p.link = link.Ifindex
			s.note(p)
		}
	}
}

// note counts a packet that is an advert.
func (s *Scanner) note(p packet) {
	name, listened := s.names[p.link]
	if !listened {
		return
	}
	a, err := ParseAdvert(p.source, p.payload)
	if err != nil {
		return
	}
	r := Router{Interface: name, Family: "IPv4", Version: a.Version, ID: int(a.RouterID), Priority: int(a.Priority),
		Interval: int(a.Interval.Milliseconds()), Source: p.source, Mode: "multicast", Addresses: a.VIPs}
	if p.source.Is6() {
		r.Family = "IPv6"
	}
	if !p.destination.IsMulticast() {
		r.Mode = "unicast"
	}
	key := fmt.Sprint(r.Interface, " ", r.Family, " ", r.Version, " ", r.ID, " ", r.Mode, " ", p.source)
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.found[key]; old != nil {
		r.Adverts = old.Adverts
	}
	r.Adverts++
	s.found[key] = &r
}

// Routers are those seen so far, by interface, ID, family, version and source.
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
