package neighbours

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/internal/netdump"
)

// A VIP acquired by the node is announced four times a second for two seconds, which no
// switch minds. keepalived announces it at once and after a second; a neighbour that
// meanwhile receives a late answer of the previous holder would send there until then.
const (
	announceEvery = 250 * time.Millisecond
	announceTimes = 8
)

// announcer sends gratuitous ARP (RFC 5227 section 3), and for IPv6 unsolicited neighbour
// advertisements (RFC 4861 section 7.2.6).
type announcer struct {
	log *slog.Logger

	mu      sync.Mutex
	left    map[netip.Addr]int // remaining announcements, by VIP
	wake    chan struct{}
	sending logging.Transitions
}

// newAnnouncer returns an announcer; run sends.
func newAnnouncer(log *slog.Logger) *announcer {
	return &announcer{log: log, left: map[netip.Addr]int{}, wake: make(chan struct{}, 1)}
}

// announce announces VIPs for a while, as long as they are on this node.
func (a *announcer) announce(vips []netip.Addr) {
	a.mu.Lock()
	for _, vip := range vips {
		a.left[vip] = announceTimes
	}
	a.mu.Unlock()
	a.notify()
}

// announceOnce announces a VIP once, if it is on this node.
func (a *announcer) announceOnce(vip netip.Addr) {
	a.mu.Lock()
	a.left[vip] = max(a.left[vip], 1)
	a.mu.Unlock()
	a.notify()
}

func (a *announcer) notify() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// run announces until ctx ends.
func (a *announcer) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.wake:
		case <-timer.C:
		}
		if a.send() {
			timer.Reset(announceEvery)
		}
	}
}

// send announces each VIP with announcements left, and reports whether any remain.
func (a *announcer) send() (more bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.left) == 0 {
		return false
	}
	list, err := netdump.Addresses()
	if err != nil {
		err = fmt.Errorf("reading the addresses: %w", err)
	}
	here := map[netip.Addr]bool{}
	for _, on := range list {
		vip := netdump.IP(on)
		if a.left[vip] == 0 {
			continue
		}
		here[vip] = true
		if failed := announceAt(on.LinkIndex, vip); failed != nil {
			err = fmt.Errorf("%s: %w", vip, failed)
		}
	}
	a.sending.Warn(a.log, err, "cannot announce VIPs: only keepalived announces them", "VIPs announced again")
	for vip, n := range a.left {
		if n--; n == 0 || !here[vip] {
			delete(a.left, vip)
		} else {
			a.left[vip] = n
		}
	}
	return len(a.left) > 0
}

// announceAt announces the VIP on a link, at the link's own address.
func announceAt(link int, vip netip.Addr) error {
	l, err := netlink.LinkByIndex(link)
	if err != nil {
		return err
	}
	at := l.Attrs().HardwareAddr
	switch {
	case len(at) != 6:
		return nil // not Ethernet: no neighbours
	case vip.Is4():
		return sendARP(link, [6]byte(at), vip)
	}
	return sendAdvertisement(link, [6]byte(at), vip)
}

// sendARP broadcasts an ARP request for the VIP by its holder (RFC 826).
func sendARP(link int, at [6]byte, vip netip.Addr) error {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	const ethernet, request = 1, 1
	var p []byte
	for _, word := range []uint16{ethernet, unix.ETH_P_IP, 6<<8 | 4, request} {
		p = binary.BigEndian.AppendUint16(p, word)
	}
	p = slices.Concat(p, at[:], vip.AsSlice(), make([]byte, 6), vip.AsSlice())
	to := &unix.SockaddrLinklayer{Protocol: unix.ETH_P_ARP>>8 | unix.ETH_P_ARP<<8&0xff00, Ifindex: link, Halen: 6}
	copy(to.Addr[:], []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	return unix.Sendto(fd, p, 0, to)
}

// sendAdvertisement sends an overriding neighbour advertisement (RFC 4861 section 4.4) to
// all nodes on the link. The kernel fills in the checksum.
func sendAdvertisement(link int, at [6]byte, vip netip.Addr) error {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMPV6)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for option, value := range map[int]int{unix.IPV6_MULTICAST_HOPS: 255, unix.IPV6_MULTICAST_IF: link} {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, option, value); err != nil {
			return err
		}
	}
	if err := unix.Bind(fd, &unix.SockaddrInet6{Addr: vip.As16()}); err != nil {
		return err
	}
	const advertisement, override, linkAddress = 136, 0x20, 2
	p := slices.Concat([]byte{advertisement, 0, 0, 0, override, 0, 0, 0}, vip.AsSlice(), []byte{linkAddress, 1}, at[:])
	allNodes := netip.IPv6LinkLocalAllNodes()
	return unix.Sendto(fd, p, 0, &unix.SockaddrInet6{Addr: allNodes.As16(), ZoneId: uint32(link)})
}
