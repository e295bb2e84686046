package fabric

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/mdlayher/socket"
	"github.com/vishvananda/netlink"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/arpnd"
	"github.com/vipgen/vipgen/internal/vrrp/listener"
)

// What a node sends at most for one request, and how fast.
const (
	burst         = 10 // announcements; keepalived sends 5 at once
	burstEvery    = 25 * time.Millisecond
	announceTimes = 3
	announceEvery = 400 * time.Millisecond
	// moveWithin bounds the wait for packets to the new holder.
	moveWithin = 3 * time.Second
	adverts    = 3
	spoken     = 5 // packets from the address
	packetGap  = 5 * time.Millisecond
	// receiveWithin bounds the wait for what the other node has just sent.
	receiveWithin = time.Second
	// lifetime has the kernel remove the address of a node that was killed.
	lifetime = 30 // seconds
)

// data counts packets from the address, among the announcements.
const data arpnd.Form = "data"

// station does the work of one node for one address.
type station struct {
	target
	peer    netip.Addr // own address of the other node
	port    int
	claims  *socket.Conn
	packets *socket.Conn
	scan    *listener.Scanner
	changed chan struct{}
	sending func()       // ends a send in the background; may be nil
	unused  bool         // no host answered for the address
	holds   bool         // this node has added the address
	held    *net.UDPConn // at the address

	mu      sync.Mutex
	counts  map[arpnd.Form]int
	reached time.Time // first packet to the address since the last reset
}

// newStation starts to observe the link. The caller must close the station.
func newStation(ctx context.Context, t target, peer netip.Addr, port int) (s *station, err error) {
	s = &station{target: t, peer: peer, port: port, changed: make(chan struct{}, 1), counts: map[arpnd.Form]int{}}
	if s.claims, err = arpnd.Open(t.link, t.address); err == nil {
		s.packets, err = openPackets(t.link, t.address)
	}
	if err == nil {
		s.scan, err = listener.Open(t.link.Name)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("observing %s: %w", t.link.Name, err), s.close())
	}
	go func() { _ = s.scan.Listen(ctx) }()
	go receive(ctx, s.claims, func(b []byte) {
		if c := arpnd.Parse(b); c.Address == s.address && c.Unsolicited {
			s.count(c.Form)
		}
	})
	go receive(ctx, s.packets, s.packet)
	return s, nil
}

// close removes all that the check has set up on this node.
func (s *station) close() error {
	s.stop()
	err := s.release()
	for _, c := range []*socket.Conn{s.claims, s.packets} {
		if c != nil {
			err = errors.Join(err, c.Close())
		}
	}
	if s.scan != nil {
		err = errors.Join(err, s.scan.Close())
	}
	return err
}

// openPackets opens a socket that receives IP packets from or to an address. The filter
// compares its last four bytes; packet the others.
func openPackets(l *net.Interface, a netip.Addr) (*socket.Conn, error) {
	protocol, from, to := uint16(unix.ETH_P_IP), uint32(12), uint32(16)
	if a.Is6() {
		protocol, from, to = unix.ETH_P_IPV6, 20, 36
	}
	b := a.AsSlice()
	low := binary.BigEndian.Uint32(b[len(b)-4:])
	return listener.PacketSocket(unix.SOCK_DGRAM, protocol, l, []bpf.Instruction{
		bpf.LoadAbsolute{Off: from, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: low, SkipTrue: 2},
		bpf.LoadAbsolute{Off: to, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: low, SkipTrue: 1},
		bpf.RetConstant{Val: 64},
		bpf.RetConstant{Val: 0},
	})
}

// receive passes packets for this host on until the socket is closed.
func receive(ctx context.Context, c *socket.Conn, handle func(b []byte)) {
	for b := make([]byte, 256); ; {
		n, from, err := c.Recvfrom(ctx, b, 0)
		switch at, _ := from.(*unix.SockaddrLinklayer); {
		case errors.Is(err, unix.ENETDOWN): // it may come up again
		case err != nil:
			return
		case at != nil && at.Pkttype != unix.PACKET_OUTGOING && at.Pkttype != unix.PACKET_OTHERHOST:
			handle(b[:n])
		}
	}
}

// packet records a UDP packet from or to the address.
func (s *station) packet(b []byte) {
	header, size, protocol := 12, 4, 9
	if s.address.Is6() {
		header, size, protocol = 8, 16, 6
	}
	if len(b) < header+2*size || b[protocol] != unix.IPPROTO_UDP {
		return
	}
	from, _ := netip.AddrFromSlice(b[header : header+size])
	to, _ := netip.AddrFromSlice(b[header+size : header+2*size])
	if from == s.address {
		s.count(data)
	}
	s.mu.Lock()
	if to == s.address && s.reached.IsZero() {
		s.reached = time.Now()
	}
	s.mu.Unlock()
	s.wake()
}

func (s *station) count(form arpnd.Form) {
	s.mu.Lock()
	s.counts[form]++
	s.mu.Unlock()
	s.wake()
}

func (s *station) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// reset forgets what was received.
func (s *station) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.counts)
	s.reached = time.Time{}
}

// await waits until a condition holds, which is called with the lock held, and reports
// whether it does.
func (s *station) await(ctx context.Context, bound time.Duration, condition func() bool) bool {
	timer := time.NewTimer(bound)
	defer timer.Stop()
	for {
		s.mu.Lock()
		ok := condition()
		s.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return false
		case <-s.changed:
		}
	}
}

// counted returns how many announcements of a form, or data, arrived since the reset. It
// waits for the last of them for a while.
func (s *station) counted(ctx context.Context, form arpnd.Form, want int) (n int) {
	s.await(ctx, receiveWithin, func() bool { n = s.counts[form]; return n >= want })
	return n
}

// hold adds the address to the link, without announcing it: deprecated, so that the node
// does not choose it as a source, and for a limited time.
func (s *station) hold(ctx context.Context) error {
	a := s.kernelAddress()
	a.Flags, a.ValidLft = unix.IFA_F_NODAD, lifetime
	err := netlink.AddrAdd(s.device(), a)
	if err != nil {
		return fmt.Errorf("adding %v to %s: %w", s.address, s.link.Name, err)
	}
	s.holds = true
	// IPv6: the kernel may take a moment until the address can be used.
	for range receiveWithin / packetGap {
		if s.held, err = net.ListenUDP("udp", s.udp(s.address)); err == nil || !pause(ctx, packetGap) {
			break
		}
	}
	return err
}

func (s *station) device() netlink.Link {
	return &netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: s.link.Index, Name: s.link.Name}}
}

func (s *station) kernelAddress() *netlink.Addr {
	a := &netlink.Addr{IPNet: &net.IPNet{IP: s.address.AsSlice(), Mask: net.CIDRMask(s.address.BitLen(), s.address.BitLen())}}
	if s.address.Is4() {
		a.Label = v1alpha1.VIPLabel
	}
	return a
}

func (s *station) udp(a netip.Addr) *net.UDPAddr {
	return net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, uint16(s.port)))
}

// release removes the address if this node has added it.
func (s *station) release() error {
	if s.held != nil {
		s.held.Close()
		s.held = nil
	}
	if !s.holds {
		return nil
	}
	s.holds = false
	err := netlink.AddrDel(s.device(), s.kernelAddress())
	if errors.Is(err, unix.EADDRNOTAVAIL) { // its lifetime has ended
		return nil
	}
	return err
}

// speak sends packets from the address to the other node.
func (s *station) speak(ctx context.Context) error {
	for range spoken {
		if _, err := s.held.WriteTo([]byte("vipgen"), s.udp(s.peer)); err != nil {
			return err
		}
		pause(ctx, packetGap)
	}
	return nil
}

// announce announces the address once or a few times, and returns how long the first
// packet took to reach this node, by its own clock; a negative duration if none did.
func (s *station) announce(ctx context.Context, form arpnd.Form) (time.Duration, error) {
	s.reset()
	began, arrived := time.Now(), func() bool { return !s.reached.IsZero() }
	for range announceTimes {
		if err := arpnd.Announce(s.link, s.address, form); err != nil {
			return 0, err
		}
		if s.await(ctx, announceEvery, arrived) {
			break
		}
	}
	if !s.await(ctx, moveWithin-time.Since(began), arrived) {
		return -1, ctx.Err()
	}
	return s.reached.Sub(began), nil
}

// repeat announces the address as a new holder does with many VIPs. A node that is busy catches up: a
// limit of the network would not show in announcements that are far apart.
func (s *station) repeat(ctx context.Context, form arpnd.Form) error {
	began := time.Now()
	for i := range burst {
		if err := arpnd.Announce(s.link, s.address, form); err != nil {
			return err
		}
		pause(ctx, time.Until(began.Add(time.Duration(i+1)*burstEvery)))
	}
	return nil
}

// send sends packets to the address in the background, as a client that knows the previous
// holder: the neighbour entry has this node's own MAC until an announcement replaces it.
func (s *station) send(ctx context.Context) error {
	err := netlink.NeighSet(&netlink.Neigh{LinkIndex: s.link.Index, State: netlink.NUD_REACHABLE, IP: s.address.AsSlice(), HardwareAddr: s.link.HardwareAddr})
	if err != nil {
		return fmt.Errorf("setting the neighbour %v: %w", s.address, err)
	}
	conn, err := net.DialUDP("udp", nil, s.udp(s.address))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*moveWithin)
	ended := make(chan struct{})
	s.sending = func() { cancel(); <-ended }
	go func() {
		defer close(ended)
		defer conn.Close()
		for pause(ctx, packetGap) {
			_, _ = conn.Write([]byte("vipgen")) // an ICMP error of before
		}
	}()
	return nil
}

// stop ends send.
func (s *station) stop() {
	if s.sending != nil {
		s.sending()
		s.sending = nil
		_ = netlink.NeighDel(&netlink.Neigh{LinkIndex: s.link.Index, IP: s.address.AsSlice()})
	}
}

// pause reports whether ctx has not ended meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// routerIDs returns the virtual router IDs that are in use on the link.
func (s *station) routerIDs() (out []int) {
	for _, r := range s.scan.Routers() {
		out = append(out, r.ID)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
