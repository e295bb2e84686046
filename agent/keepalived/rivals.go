package keepalived

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

// rivals hears whether other hosts say on the link that they have VIPs of this node, as
// a holder does that takes one. A node that others do not send adverts to learns in no
// other way that somebody holds beside it.
type rivals struct {
	log     *slog.Logger
	changed func() // is told of the first claim of a VIP
	// answer is told of every claim by another host, with that host's link address; nil
	// where it is nobody's.
	answer  func(vip netip.Addr, link string, from net.HardwareAddr)
	failing logging.Transitions

	mu   sync.Mutex
	ears map[netip.Addr]*claims // by VIP
}

// claims are those of one VIP.
type claims struct {
	link string
	stop context.CancelFunc
	came bool
	// announced is when the first announcement came that is not forgotten: a claim that
	// nobody asked for, which keepalived makes when it takes a VIP and every 30 s after.
	// A kernel whose keepalived stands still makes none.
	announced time.Time
	latest    time.Time // when the last one came
	told      time.Time // when changed was told of one
}

// follow makes it listen for claims of the VIPs of those instances, and forget others.
func (r *rivals) follow(instances []keepalived.Instance) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wanted := map[netip.Addr]string{}
	for _, i := range instances {
		wanted[i.VIP.Addr()] = i.Interface
	}
	for vip, e := range r.ears {
		if wanted[vip] != e.link {
			e.stop()
			delete(r.ears, vip)
		}
	}
	var errs []error
	for vip, link := range wanted {
		if r.ears[vip] != nil {
			continue
		}
		e := &claims{link: link}
		var ctx context.Context
		ctx, e.stop = context.WithCancel(context.Background())
		if err := r.listen(ctx, vip, e); err != nil {
			e.stop()
			errs = append(errs, err)
			continue
		}
		if r.ears == nil {
			r.ears = map[netip.Addr]*claims{}
		}
		r.ears[vip] = e
	}
	r.failing.Warn(r.log, errors.Join(errs...), "cannot hear whether other hosts have VIPs of this node", "can hear whether other hosts have VIPs of this node")
}

// claimed says whether another host has said that it has a VIP since that is followed.
func (r *rivals) claimed(vip netip.Addr) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.ears[vip]
	return e != nil && e.came
}

// announced is when another host first announced that it has a VIP, later than since: it
// is the zero value if none has. What was announced before is forgotten.
func (r *rivals) announced(vip netip.Addr, since time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.ears[vip]
	if e == nil {
		return time.Time{}
	}
	if !e.announced.After(since) {
		e.announced = time.Time{}
	}
	return e.announced
}

// again reports whether another host has announced that it has a VIP a while after since.
func (r *rivals) again(vip netip.Addr, since time.Time, while time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.ears[vip]
	return e != nil && e.latest.Sub(since) >= while
}

// listen waits for claims of a VIP until ctx ends.
func (r *rivals) listen(ctx context.Context, vip netip.Addr, e *claims) error {
	l, err := net.InterfaceByName(e.link)
	var c *socket.Conn
	if err == nil {
		c, err = openClaims(l, vip)
	}
	if err != nil {
		return fmt.Errorf("listening for claims of %v on %s: %w", vip, e.link, err)
	}
	context.AfterFunc(ctx, func() { c.Close() })
	go func() {
		for packet := make([]byte, 256); ; {
			n, from, err := c.Recvfrom(ctx, packet, 0)
			switch at, _ := from.(*unix.SockaddrLinklayer); {
			case ctx.Err() != nil:
				return
			case errors.Is(err, unix.ENETDOWN): // it may come up again
			case err != nil:
				return
			case at != nil && at.Pkttype != unix.PACKET_OUTGOING && claim(packet[:n]) == vip:
				// A switch may send back what this node has sent.
				by := net.HardwareAddr(bytes.Clone(at.Addr[:min(int(at.Halen), len(at.Addr))]))
				other := !bytes.Equal(by, l.HardwareAddr)
				r.note(e, announcement(packet[:n]) && other)
				if r.answer != nil && other {
					r.answer(vip, e.link, by)
				}
			}
		}
	}()
	return nil
}

func (r *rivals) note(e *claims, announcement bool) {
	now := time.Now()
	r.mu.Lock()
	tell := !e.came
	e.came = true
	if announcement {
		if e.latest = now; e.announced.IsZero() {
			e.announced = now
		}
		tell = tell || now.Sub(e.told) >= tellEvery
	}
	if tell {
		e.told = now
	}
	r.mu.Unlock()
	if tell {
		r.changed()
	}
}

// tellEvery bounds how often announcements have the node look at how things stand.
const tellEvery = time.Second

const (
	neighbourAdvertisement = 136 // RFC 4861, section 4.4
	arpLength              = 28  // of Ethernet and IPv4: RFC 826
	ipv6Header             = 40
)

// openClaims opens a socket that receives what hosts on a link say of an address: ARP by
// whoever has it, or neighbour advertisements of it. What is about other addresses wakes up
// nobody.
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

// claim is the address that the sender of a packet says it has; the zero value if it
// says none. Whoever asks or answers in the name of an address has it; a probe asks in
// that of none (RFC 5227, section 1.1).
func claim(b []byte) (a netip.Addr) {
	switch {
	case len(b) >= arpLength && b[0] == 0 && b[1] == 1 && b[2] == 8 && b[3] == 0 && b[4] == 6 && b[5] == 4:
		a, _ = netip.AddrFromSlice(b[14:18])
	case len(b) >= ipv6Header+24 && b[0]>>4 == 6 && b[6] == unix.IPPROTO_ICMPV6 && b[7] == 255 && b[ipv6Header] == neighbourAdvertisement:
		a, _ = netip.AddrFromSlice(b[ipv6Header+8 : ipv6Header+24]) // RFC 4861, sections 4.4 and 7.1.2
	}
	return a
}

// announcement says whether nobody has asked for a claim: the sender of an ARP packet asks
// for itself (RFC 5227, section 1.1), a neighbour advertisement is not solicited (RFC 4861,
// section 4.4).
func announcement(b []byte) bool {
	if b[0]>>4 == 6 {
		const solicited = 0x40
		return b[ipv6Header+4]&solicited == 0
	}
	return bytes.Equal(b[14:18], b[24:28])
}
