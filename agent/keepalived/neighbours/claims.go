package neighbours

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/mdlayher/socket"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/internal/vrrp/listener"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// Claims watches the link for other hosts that claim VIPs of this node, as every new
// holder does. A node that receives no adverts learns of another holder in no other way.
type Claims struct {
	log     *slog.Logger
	changed func() // called for the first claim of a VIP, and for announcements
	// answer is called for every claim by another host, with that host's link address; it may
	// be nil.
	answer  func(vip netip.Addr, link string, from net.HardwareAddr)
	failing logging.Transitions

	mu        sync.Mutex
	listeners map[netip.Addr]*claimListener // by VIP
}

// claimListener holds the claims of one VIP.
type claimListener struct {
	link    string
	stop    context.CancelFunc
	claimed bool
	// announced is the time of the first remembered announcement: an unsolicited claim,
	// which keepalived makes when it acquires a VIP and every 30 s after. The kernel of a
	// node whose keepalived hangs makes none.
	announced time.Time
	latest    time.Time // of announcements
	notified  time.Time // last call of changed
}

// NewClaims returns Claims that call changed for the first claim of a VIP, and once a second
// for announcements.
func NewClaims(changed func(), log *slog.Logger) *Claims { return &Claims{changed: changed, log: log} }

// Follow listens for claims of the VIPs of these instances, and of no others.
func (c *Claims) Follow(instances []keepalived.Instance) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wanted := map[netip.Addr]string{}
	for _, i := range instances {
		wanted[i.VIP.Addr()] = i.Interface
	}
	for vip, l := range c.listeners {
		if wanted[vip] != l.link {
			l.stop()
			delete(c.listeners, vip)
		}
	}
	var errs []error
	for vip, link := range wanted {
		if c.listeners[vip] != nil {
			continue
		}
		l := &claimListener{link: link}
		var ctx context.Context
		ctx, l.stop = context.WithCancel(context.Background())
		if err := c.listen(ctx, vip, l); err != nil {
			l.stop()
			errs = append(errs, err)
			continue
		}
		if c.listeners == nil {
			c.listeners = map[netip.Addr]*claimListener{}
		}
		c.listeners[vip] = l
	}
	c.failing.Warn(c.log, errors.Join(errs...), "cannot watch claims of VIPs by other hosts", "claims of VIPs by other hosts watched again")
}

// Claimed reports whether another host has claimed a VIP since Follow.
func (c *Claims) Claimed(vip netip.Addr) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.listeners[vip]
	return l != nil && l.claimed
}

// Announced returns when another host first announced a VIP after since; the zero value
// if none did. It forgets announcements before since.
func (c *Claims) Announced(vip netip.Addr, since time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.listeners[vip]
	if l == nil {
		return time.Time{}
	}
	if !l.announced.After(since) {
		l.announced = time.Time{}
	}
	return l.announced
}

// AnnouncedAfter reports whether another host announced a VIP at that time or later.
func (c *Claims) AnnouncedAfter(vip netip.Addr, at time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.listeners[vip]
	return l != nil && !l.latest.Before(at)
}

// listen waits for claims of a VIP until ctx ends.
func (c *Claims) listen(ctx context.Context, vip netip.Addr, l *claimListener) error {
	link, err := net.InterfaceByName(l.link)
	var conn *socket.Conn
	if err == nil {
		conn, err = openClaims(link, vip)
	}
	if err != nil {
		return fmt.Errorf("listening for claims of %v on %s: %w", vip, l.link, err)
	}
	context.AfterFunc(ctx, func() { conn.Close() })
	go func() {
		for packet := make([]byte, 256); ; {
			n, from, err := conn.Recvfrom(ctx, packet, 0)
			switch at, _ := from.(*unix.SockaddrLinklayer); {
			case ctx.Err() != nil:
				return
			case errors.Is(err, unix.ENETDOWN): // it may come up again
			case err != nil:
				return
			case at != nil && at.Pkttype != unix.PACKET_OUTGOING && claim(packet[:n]) == vip:
				// A switch may send back what this node has sent.
				by := net.HardwareAddr(bytes.Clone(at.Addr[:min(int(at.Halen), len(at.Addr))]))
				other := !bytes.Equal(by, link.HardwareAddr)
				c.record(l, announcement(packet[:n]) && other)
				if c.answer != nil && other {
					c.answer(vip, l.link, by)
				}
			}
		}
	}()
	return nil
}

func (c *Claims) record(l *claimListener, announcement bool) {
	now := time.Now()
	c.mu.Lock()
	notify := !l.claimed
	l.claimed = true
	if announcement {
		if l.latest = now; l.announced.IsZero() {
			l.announced = now
		}
		notify = notify || now.Sub(l.notified) >= notifyEvery
	}
	if notify {
		l.notified = now
	}
	c.mu.Unlock()
	if notify {
		c.changed()
	}
}

// notifyEvery bounds how often announcements have the node evaluated.
const notifyEvery = time.Second

const (
	neighbourAdvertisement = 136 // RFC 4861, section 4.4
	arpLength              = 28  // of Ethernet and IPv4: RFC 826
	ipv6Header             = 40
)

// openClaims opens a socket that receives claims of an address on a link: ARP from its
// holder, or neighbour advertisements for it. The filter drops packets about other
// addresses.
func openClaims(l *net.Interface, a netip.Addr) (*socket.Conn, error) {
	const senderAddress = 14 // of an ARP packet
	var filter []bpf.Instruction
	is := func(offset, size, value uint32) {
		filter = append(filter, bpf.LoadAbsolute{Off: offset, Size: int(size)}, bpf.JumpIf{Cond: bpf.JumpEqual, Val: value, SkipTrue: 1}, bpf.RetConstant{Val: 0})
	}
	protocol, first := uint16(unix.ETH_P_ARP), uint32(senderAddress)
	if a.Is6() {
		protocol, first = unix.ETH_P_IPV6, ipv6Header+8
		is(6, 1, unix.IPPROTO_ICMPV6)
		is(ipv6Header, 1, neighbourAdvertisement)
	}
	for n, b := 0, a.AsSlice(); n < len(b); n += 4 {
		is(first+uint32(n), 4, binary.BigEndian.Uint32(b[n:]))
	}
	return listener.PacketSocket(unix.SOCK_DGRAM, protocol, l, append(filter, bpf.RetConstant{Val: 256}))
}

// claim returns the address that the sender of a packet claims; the zero value for none.
// The sender of an ARP request or reply claims its sender address; a probe has none (RFC
// 5227, section 1.1).
func claim(b []byte) (a netip.Addr) {
	switch {
	case len(b) >= arpLength && b[0] == 0 && b[1] == 1 && b[2] == 8 && b[3] == 0 && b[4] == 6 && b[5] == 4:
		a, _ = netip.AddrFromSlice(b[14:18])
	case len(b) >= ipv6Header+24 && b[0]>>4 == 6 && b[6] == unix.IPPROTO_ICMPV6 && b[7] == 255 && b[ipv6Header] == neighbourAdvertisement:
		a, _ = netip.AddrFromSlice(b[ipv6Header+8 : ipv6Header+24]) // RFC 4861, sections 4.4 and 7.1.2
	}
	return a
}

// announcement reports whether a claim is unsolicited: an ARP packet in which the sender
// asks for its own address (RFC 5227, section 1.1), or an unsolicited neighbour
// advertisement (RFC 4861, section 4.4).
func announcement(b []byte) bool {
	if b[0]>>4 == 6 {
		const solicited = 0x40
		return b[ipv6Header+4]&solicited == 0
	}
	return bytes.Equal(b[14:18], b[24:28])
}
