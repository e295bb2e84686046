// Package listener receives VRRP advertisements, and lists the routers that send them.
package listener

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/mdlayher/socket"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/vrrp"
)

// Received is a received advertisement.
type Received struct {
	vrrp.Advert
	Destination netip.Addr
	TTL         int // or hop limit
	Interface   int // index of the receiving interface
	// Waited is how long it was in the socket, by the wall clock: a long wait means that
	// the process hung, and the advert is outdated.
	Waited time.Duration
}

// Listener receives advertisements. Only one goroutine may use it at a time. The caller
// must Close it.
type Listener struct {
	conn *socket.Conn
	// packet parses the data of the socket; ok is false for unrelated packets.
	packet          func(b, control []byte, from unix.Sockaddr) (p vrrp.Packet, link int, ok bool)
	buffer, control []byte
}

// OnInterface listens for adverts on an interface, multicast or to the host's own
// addresses, after packet filters. It needs CAP_NET_RAW.
func OnInterface(name string, ip6 bool) (*Listener, error) {
	link, err := net.InterfaceByName(name)
	if err != nil {
		return nil, err
	}
	l, err := open(ip6)
	if err == nil {
		err = closeAfter(l, l.join(link, ip6))
	}
	if err != nil {
		return nil, fmt.Errorf("listening for advertisements on %s: %w", name, err)
	}
	packet := l.packet
	l.packet = func(b, control []byte, from unix.Sockaddr) (vrrp.Packet, int, bool) {
		p, index, ok := packet(b, control, from)
		return p, index, ok && index == link.Index
	}
	return l, nil
}

// AtAddress listens for adverts to one of the host's own addresses, after packet filters.
// It needs CAP_NET_RAW.
func AtAddress(a netip.Addr) (*Listener, error) {
	l, err := open(a.Is6())
	if err == nil {
		var at unix.Sockaddr = &unix.SockaddrInet6{Addr: a.As16()}
		if a.Is4() {
			at = &unix.SockaddrInet4{Addr: a.As4()}
		}
		err = closeAfter(l, l.conn.Bind(at))
	}
	if err != nil {
		return nil, fmt.Errorf("listening for advertisements at %v: %w", a, err)
	}
	return l, nil
}

// open opens a socket for adverts to this host: raw(7), and with IPv6 ipv6(7).
func open(ip6 bool) (*Listener, error) {
	family, options := unix.AF_INET, [][2]int{{unix.IPPROTO_IP, unix.IP_PKTINFO}}
	l := &Listener{packet: packet4}
	if ip6 {
		family, l.packet = unix.AF_INET6, packet6
		options = [][2]int{{unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO}, {unix.IPPROTO_IPV6, unix.IPV6_RECVHOPLIMIT}}
	}
	conn, err := socket.Socket(family, unix.SOCK_RAW, vrrp.Protocol, "vrrp", nil)
	if err != nil {
		return nil, privileged(err)
	}
	for _, o := range append(options, [2]int{unix.SOL_SOCKET, unix.SO_TIMESTAMPNS}) {
		if err := conn.SetsockoptInt(o[0], o[1], 1); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return l.attach(conn), nil
}

func (l *Listener) attach(conn *socket.Conn) *Listener {
	l.conn, l.buffer, l.control = conn, make([]byte, 4096), make([]byte, 256) // an advert has 255 addresses at most
	return l
}

// closeAfter returns an error, and closes the listener if there is one.
func closeAfter(l *Listener, err error) error {
	if err != nil {
		return errors.Join(err, l.Close())
	}
	return nil
}

// packet4 parses data of an IPv4 raw socket: the packet with its IP header.
func packet4(b, control []byte, _ unix.Sockaddr) (vrrp.Packet, int, bool) {
	var cm ipv4.ControlMessage
	p, ok := vrrp.ParsePacket(b)
	return p, cm.IfIndex, cm.Parse(control) == nil && ok
}

// packet6 parses data of an IPv6 raw socket: the payload.
func packet6(b, control []byte, from unix.Sockaddr) (vrrp.Packet, int, bool) {
	var cm ipv6.ControlMessage
	source, ok := from.(*unix.SockaddrInet6)
	if !ok || cm.Parse(control) != nil {
		return vrrp.Packet{}, 0, false
	}
	to, _ := netip.AddrFromSlice(cm.Dst)
	return vrrp.Packet{Source: netip.AddrFrom16(source.Addr), Destination: to, TTL: cm.HopLimit, Payload: b}, cm.IfIndex, true
}

// join joins the multicast group of a family on a link.
func (l *Listener) join(link *net.Interface, ip6 bool) error {
	raw, err := l.conn.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		if ip6 {
			failed = unix.SetsockoptIPv6Mreq(int(fd), unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP,
				&unix.IPv6Mreq{Multiaddr: vrrp.MulticastGroup6.As16(), Interface: uint32(link.Index)})
		} else {
			failed = unix.SetsockoptIPMreqn(int(fd), unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP,
				&unix.IPMreqn{Multiaddr: vrrp.MulticastGroup4.As4(), Ifindex: int32(link.Index)})
		}
	})
	return errors.Join(err, failed)
}

// Receive returns the next advertisement. After the end of ctx it returns ctx's error.
func (l *Listener) Receive(ctx context.Context) (Received, error) {
	for {
		n, control, _, from, err := l.conn.Recvmsg(ctx, l.buffer, l.control, 0)
		switch {
		case ctx.Err() != nil:
			return Received{}, ctx.Err()
		case err != nil:
			return Received{}, fmt.Errorf("reading adverts: %w", err)
		}
		p, link, ok := l.packet(l.buffer[:n], l.control[:control], from)
		if !ok {
			continue
		}
		if a, err := vrrp.ParseAdvert(p.Source, p.Payload); err == nil {
			return Received{Advert: *a, Destination: p.Destination, TTL: p.TTL, Interface: link, Waited: Waited(l.control[:control])}, nil
		}
	}
}

// Close stops listening, and ends a waiting Receive.
func (l *Listener) Close() error { return l.conn.Close() }

// Waited returns how long ago the kernel received a packet, by the control messages of a
// socket with the option SO_TIMESTAMPNS; 0 if they lack it.
func Waited(control []byte) time.Duration {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return 0
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_TIMESTAMPNS && len(m.Data) >= 16 {
			seconds, rest := binary.NativeEndian.Uint64(m.Data), binary.NativeEndian.Uint64(m.Data[8:])
			return time.Since(time.Unix(int64(seconds), int64(rest)))
		}
	}
	return 0
}

func privileged(err error) error {
	if errors.Is(err, syscall.EPERM) {
		return fmt.Errorf("%w: raw sockets take root, or the capability NET_RAW", err)
	}
	return err
}
