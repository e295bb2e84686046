package vrrp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
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

// Scanner listens for adverts on interfaces.
type Scanner struct {
	// Interfaces are those listened on.
	Interfaces []string

	four *ipv4.PacketConn
	six  *ipv6.PacketConn
	// names of interfaces by their index.
	names map[int]string

	mu    sync.Mutex
	found map[string]*Router
}

// Open joins the groups that adverts are sent to, on the named interfaces or on
// all that are up and are not loopback. It takes CAP_NET_RAW. A family that this
// host does not have is left out. The caller must Close it.
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
		return l.Flags&net.FlagUp == 0 || l.Flags&net.FlagLoopback != 0
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

func (s *Scanner) open4(links []net.Interface) error {
	c, err := net.ListenPacket("ip4:112", "0.0.0.0")
	if err != nil {
		return privileged(err)
	}
	p := ipv4.NewPacketConn(c)
	if err := join(p, links, group4); err != nil {
		return errors.Join(err, c.Close())
	}
	if err := p.SetControlMessage(ipv4.FlagDst|ipv4.FlagInterface, true); err != nil {
		return errors.Join(err, c.Close())
	}
	s.four = p
	return nil
}

func (s *Scanner) open6(links []net.Interface) error {
	c, err := net.ListenPacket("ip6:112", "::")
	if err != nil {
		return privileged(err)
	}
	p := ipv6.NewPacketConn(c)
	if err := join(p, links, group6); err != nil {
		return errors.Join(err, c.Close())
	}
	if err := p.SetControlMessage(ipv6.FlagDst|ipv6.FlagInterface, true); err != nil {
		return errors.Join(err, c.Close())
	}
	s.six = p
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
	var err error
	if s.four != nil {
		err = s.four.Close()
	}
	if s.six != nil {
		err = errors.Join(err, s.six.Close())
	}
	return err
}

// Listen takes adverts until ctx is done.
func (s *Scanner) Listen(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		now := time.Now()
		if s.four != nil {
			_ = s.four.SetReadDeadline(now)
		}
		if s.six != nil {
			_ = s.six.SetReadDeadline(now)
		}
	})
	defer stop()
	var wait sync.WaitGroup
	var err4, err6 error
	if s.four != nil {
		wait.Go(func() { err4 = s.listen(s.read4) })
	}
	if s.six != nil {
		wait.Go(func() { err6 = s.listen(s.read6) })
	}
	wait.Wait()
	return errors.Join(err4, err6)
}

// packet is one that was received.
type packet struct {
	source      net.Addr
	destination net.IP
	link        int
	payload     []byte
}

func (s *Scanner) read4(b []byte) (p packet, err error) {
	n, m, source, err := s.four.ReadFrom(b)
	if err != nil {
		return p, err
	}
	p = packet{source: source, payload: b[:n]}
	if m != nil {
		p.destination, p.link = m.Dst, m.IfIndex
	}
	return p, nil
}

func (s *Scanner) read6(b []byte) (p packet, err error) {
	n, m, source, err := s.six.ReadFrom(b)
	if err != nil {
		return p, err
	}
	p = packet{source: source, payload: b[:n]}
	if m != nil {
		p.destination, p.link = m.Dst, m.IfIndex
	}
	return p, nil
}

// listen takes packets until the deadline of the socket.
func (s *Scanner) listen(read func([]byte) (packet, error)) error {
	buffer := make([]byte, 2048) // an advert has 255 addresses at most, and fits a frame
	for {
		p, err := read(buffer)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			return fmt.Errorf("reading adverts: %w", err)
		}
		s.note(p)
	}
}

// note counts a packet that is an advert.
func (s *Scanner) note(p packet) {
	name, listened := s.names[p.link]
	from, ok := p.source.(*net.IPAddr)
	if !ok || !listened {
		return
	}
	source, ok := netip.AddrFromSlice(from.IP)
	if !ok {
		return
	}
	source = source.Unmap()
	a, err := ParseAdvert(source, p.payload)
	if err != nil {
		return
	}
	r := Router{Interface: name, Family: "IPv4", Version: a.Version, ID: int(a.RouterID), Priority: int(a.Priority),
		Interval: int(a.Interval.Milliseconds()), Source: source, Mode: "multicast", Addresses: a.VIPs}
	if source.Is6() {
		r.Family = "IPv6"
	}
	if !p.destination.IsMulticast() {
		r.Mode = "unicast"
	}
	key := fmt.Sprint(r.Interface, " ", r.Family, " ", r.Version, " ", r.ID, " ", r.Mode, " ", source)
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
