package attack

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/testbed/netns"
)

// Packet is a packet of the hostile host.
type Packet struct {
	// To is the destination. Without a port Data is the packet from its IP header on; with one
	// it is the payload of UDP, from the same port (RFC 6762 section 6).
	To   netip.AddrPort
	Data []byte
}

// Flood is a host's continuous stream of packets.
type Flood struct {
	sent atomic.Int64
	stop func()
}

// Start makes a host send the packets in turn from its first link, perSecond in total, until
// Stop. Packets beyond the network's capacity are lost, as on a wire.
func Start(host *netns.Node, perSecond int, packets ...Packet) (*Flood, error) {
	if len(packets) == 0 || perSecond < 1 {
		return nil, errors.New("a flood of nothing")
	}
	sockets := map[kind]int{}
	closeAll := func() {
		for _, fd := range sockets {
			unix.Close(fd)
		}
	}
	for _, p := range packets {
		k := p.kind()
		if _, open := sockets[k]; open {
			continue
		}
		fd, err := k.open(host)
		if err != nil {
			closeAll()
			return nil, fmt.Errorf("flooding from %s: %w", host.Name, err)
		}
		sockets[k] = fd
	}
	ctx, cancel := context.WithCancel(context.Background())
	f, done := &Flood{}, make(chan struct{})
	f.stop = sync.OnceFunc(func() { cancel(); <-done })
	go func() {
		defer close(done)
		defer closeAll()
		tick := time.NewTicker(max(time.Second/time.Duration(perSecond), time.Millisecond))
		defer tick.Stop()
		began := time.Now()
		for ctx.Err() == nil {
			for due := int64(time.Since(began).Seconds() * float64(perSecond)); f.sent.Load() < due; f.sent.Add(1) {
				p := &packets[f.sent.Load()%int64(len(packets))]
				unix.Sendto(sockets[p.kind()], p.Data, unix.MSG_DONTWAIT, sockaddr(p.To))
			}
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	}()
	return f, nil
}

// Sent returns the number of packets sent so far.
func (f *Flood) Sent() int64 { return f.sent.Load() }

// Stop ends the flood. It may be called repeatedly.
func (f *Flood) Stop() { f.stop() }

// kind identifies a socket by its family, and its UDP port or 0.
type kind struct {
	ipv6 bool
	port uint16
}

func (p *Packet) kind() kind { return kind{p.To.Addr().Is6(), p.To.Port()} }

// open opens a socket of the host for such packets.
func (k kind) open(host *netns.Node) (fd int, err error) {
	family := unix.AF_INET
	if k.ipv6 {
		family = unix.AF_INET6
	}
	err = host.Do(func() (err error) {
		if k.port == 0 {
			fd, err = unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW) // header included: raw(7)
		} else {
			fd, err = unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	err = unix.BindToDevice(fd, host.Link)
	if k.port != 0 && err == nil {
		err = k.udp(fd)
	}
	if err != nil {
		unix.Close(fd)
		return 0, err
	}
	return fd, nil
}

// onLink is the TTL, or hop limit, of multicast DNS (RFC 6762 section 11).
const onLink = 255

func (k kind) udp(fd int) error {
	if !k.ipv6 {
		return errors.Join(unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_TTL, onLink),
			unix.Bind(fd, &unix.SockaddrInet4{Port: int(k.port)}))
	}
	return errors.Join(unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1),
		unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_HOPS, onLink),
		unix.Bind(fd, &unix.SockaddrInet6{Port: int(k.port)}))
}
