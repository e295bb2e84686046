package keepalived

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
	"github.com/vipgen/vipgen/templates/keepalived"
)

// A VIP that has come to the node is announced again for two seconds, four times a second,
// which no switch minds. keepalived announces it at once and after a second; a neighbour
// that meanwhile takes the word of the node that had the VIP, such as an answer to a
// question that was asked before, would send there until then.
const (
	garpEvery = 250 * time.Millisecond
	garpTimes = 8
)

// garp sends gratuitous ARP (RFC 5227 section 3), and for IPv6 unsolicited neighbour
// advertisements (RFC 4861 section 7.2.6).
type garp struct {
	log *slog.Logger

	mu      sync.Mutex
	left    map[netip.Addr]int // how often a VIP is still to be announced
	wake    chan struct{}
	sending logging.Transitions
}

func newGARP(log *slog.Logger) *garp {
	return &garp{log: log, left: map[netip.Addr]int{}, wake: make(chan struct{}, 1)}
}

// announce has VIPs announced from now on, for as long as they are on this node.
func (g *garp) announce(vips []netip.Addr) {
	g.mu.Lock()
	for _, vip := range vips {
		g.left[vip] = garpTimes
	}
	g.mu.Unlock()
	g.now()
}

// answer announces a VIP once, if it is on this node.
func (g *garp) answer(vip netip.Addr) {
	g.mu.Lock()
	g.left[vip] = max(g.left[vip], 1)
	g.mu.Unlock()
	g.now()
}

// now has run announce at once.
func (g *garp) now() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// run announces until ctx ends.
func (g *garp) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.wake:
		case <-timer.C:
		}
		if g.once() {
			timer.Reset(garpEvery)
		}
	}
}

// once announces each VIP that is still to be announced, and says whether any is left.
func (g *garp) once() (more bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.left) == 0 {
		return false
	}
	list, err := addresses()
	here := map[netip.Addr]bool{}
	for _, a := range list {
		vip := ipOf(a)
		if g.left[vip] == 0 {
			continue
		}
		here[vip] = true
		if failed := announceAt(a.LinkIndex, vip); failed != nil {
			err = fmt.Errorf("%s: %w", vip, failed)
		}
	}
	g.sending.Warn(g.log, err, "VIPs are announced by keepalived alone", "VIPs are announced again after they have come")
	for vip, n := range g.left {
		if n--; n == 0 || !here[vip] {
			delete(g.left, vip)
		} else {
			g.left[vip] = n
		}
	}
	return len(g.left) > 0
}

// announceAt tells the neighbours on a link that the VIP is at the link's own address.
func announceAt(link int, vip netip.Addr) error {
	l, err := netlink.LinkByIndex(link)
	if err != nil {
		return err
	}
	at := l.Attrs().HardwareAddr
	switch {
	case len(at) != 6:
		return nil // no Ethernet, and no neighbours to tell
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

// sendAdvertisement sends a neighbour advertisement that overrides what is known (RFC 4861
// section 4.4) to all nodes of the link. The kernel fills in the checksum.
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

// came are the VIPs among addresses that were not on this node before.
func (s *shared) came(held []netip.Addr) []netip.Addr {
	if s.now == nil {
		return nil
	}
	return slices.DeleteFunc(s.now.vips(), func(vip netip.Addr) bool {
		return !slices.Contains(held, vip) || slices.Contains(s.held, vip)
	})
}

// announceHeld announces the VIPs of a configuration that are on this node.
func (j *Job) announceHeld(conf *keepalived.Conf) {
	held := j.shared.addresses()
	var vips []netip.Addr
	for _, i := range conf.Instances {
		if vip := i.VIP.Addr(); slices.Contains(held, vip) {
			vips = append(vips, vip)
		}
	}
	j.garp.announce(vips)
}
