package mdns

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

const port = v1alpha1.MDNSPort

var group4, group6 = v1alpha1.MDNSGroup4, v1alpha1.MDNSGroup6

// hops is the TTL of packets from the same link (RFC 6762 section 11).
const hops = 255

// maxMessage is the largest message (RFC 6762 section 17).
const maxMessage = 9000

type packet struct {
	msg  *dns.Msg
	from netip.AddrPort
}

// group is the membership in the multicast groups on one link.
type group struct {
	sockets []socket
	packets chan packet
	closed  chan struct{}
}

// socket is the membership in the group of one address family.
type socket struct {
	*net.UDPConn
	to netip.AddrPort
}

// join joins the groups on the link of a place, for each family of which the link has
// addresses (hard case 25).
//
// The sockets are bound to the groups, so that other responders on the node, such as
// avahi, still receive packets to the node's own address.
func join(at place) (*group, error) {
	g := &group{packets: make(chan packet), closed: make(chan struct{})}
	var errs []error
	if len(at.addresses) > 0 && at.addresses[0].Is4() { // IPv4 comes first
		fd, err := socket4(at.link, at.addresses[0])
		errs = append(errs, g.add(fd, group4, err))
	}
	if at.linkLocal || slices.ContainsFunc(at.addresses, netip.Addr.Is6) {
		fd, err := socket6(at.link)
		errs = append(errs, g.add(fd, group6, err))
	}
	if len(g.sockets) == 0 {
		return nil, fmt.Errorf("joining the multicast groups: %w", errors.Join(errs...))
	}
	return g, nil
}

// add takes over a socket, or returns the error that prevented it.
func (g *group) add(fd int, to netip.Addr, err error) error {
	if err != nil {
		return fmt.Errorf("%v: %w", to, err)
	}
	conn, err := packetConn(fd)
	if err != nil {
		return fmt.Errorf("%v: %w", to, err)
	}
	s := socket{conn, netip.AddrPortFrom(to, port)}
	g.sockets = append(g.sockets, s)
	go g.read(s)
	return nil
}

// packetConn takes over a file descriptor.
func packetConn(fd int) (*net.UDPConn, error) {
	file := os.NewFile(uintptr(fd), "mdns")
	defer file.Close()
	conn, err := net.FilePacketConn(file)
	if err != nil {
		return nil, err
	}
	return conn.(*net.UDPConn), nil
}

func socket4(link int, source netip.Addr) (fd int, err error) {
	return setUp(unix.AF_INET, &unix.SockaddrInet4{Port: port, Addr: group4.As4()}, func(fd int) error {
		in := &unix.IPMreqn{Multiaddr: group4.As4(), Ifindex: int32(link)}
		out := &unix.IPMreqn{Address: source.As4(), Ifindex: int32(link)}
		return errors.Join(
			unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_ALL, 0),
			unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, in),
			unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_IF, out),
			unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_TTL, hops),
			unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TTL, hops),
		)
	})
}

func socket6(link int) (fd int, err error) {
	// The zone of a link-local group binds the socket to the link.
	addr := &unix.SockaddrInet6{Port: port, ZoneId: uint32(link), Addr: group6.As16()}
	return setUp(unix.AF_INET6, addr, func(fd int) error {
		in := &unix.IPv6Mreq{Multiaddr: group6.As16(), Interface: uint32(link)}
		return errors.Join(
			unix.SetsockoptIPv6Mreq(fd, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP, in),
			unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_IF, link),
			unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_HOPS, hops),
			unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS, hops),
		)
	})
}

// setUp opens a socket that shares its port with other responders.
func setUp(family int, addr unix.Sockaddr, options func(fd int) error) (int, error) {
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if err == nil && family == unix.AF_INET6 {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1)
	}
	if err == nil {
		err = unix.Bind(fd, addr)
	}
	if err == nil {
		err = options(fd)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// read delivers messages until the group is closed. Invalid messages, and those with an
// opcode or response code, are ignored (RFC 6762 section 18), as are responses from
// another port (section 6).
func (g *group) read(s socket) {
	buf := make([]byte, maxMessage)
	for {
		n, from, err := s.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		msg := new(dns.Msg)
		if msg.Unpack(buf[:n]) != nil || msg.Opcode != dns.OpcodeQuery || msg.Rcode != dns.RcodeSuccess {
			continue
		}
		if msg.Response && from.Port() != port {
			continue
		}
		select {
		case g.packets <- packet{msg, from}:
		case <-g.closed:
			return
		}
	}
}

// send sends a message to the groups. It returns an error only if all families fail.
func (g *group) send(msg *dns.Msg) error {
	data, err := pack(msg)
	if err != nil {
		return err
	}
	var errs []error
	for _, s := range g.sockets {
		if _, err := s.WriteToUDPAddrPort(data, s.to); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) < len(g.sockets) {
		return nil
	}
	return errors.Join(errs...)
}

func (g *group) sendTo(to netip.AddrPort, msg *dns.Msg) error {
	data, err := pack(msg)
	if err != nil {
		return err
	}
	for _, s := range g.sockets {
		if s.to.Addr().Is4() == to.Addr().Is4() {
			_, err = s.WriteToUDPAddrPort(data, to)
		}
	}
	return err
}

func pack(msg *dns.Msg) ([]byte, error) {
	msg.Compress = true
	return msg.Pack()
}

func (g *group) leave() {
	close(g.closed)
	for _, s := range g.sockets {
		s.Close()
	}
}
