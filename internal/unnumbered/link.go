package unnumbered

import (
	"errors"
	"net"
	"net/netip"
	"time"

	"golang.org/x/net/ipv6"
)

const (
	// every is the time between advertisements, FRR's where it has sessions by interface.
	every = 10 * time.Second
	// gap is the least time between two of them, however many hosts solicit, and that while no session is
	// established (RFC 4861 section 10, MIN_DELAY_BETWEEN_RAS).
	gap = 3 * time.Second
)

var (
	allNodes   = net.IP{0: 0xff, 1: 2, 15: 1}
	allRouters = net.IP{0: 0xff, 1: 2, 15: 2}
)

// link sends and receives router advertisements at one interface.
type link struct {
	choice
	at        place
	conn      *ipv6.PacketConn
	hardware  net.HardwareAddr
	found     func()
	solicited chan struct{} // holds a value while an advertisement is due
	done      chan struct{}
}

func open(at place, found func()) (*link, error) {
	i, err := net.InterfaceByIndex(at.index)
	if err != nil {
		return nil, err
	}
	raw, err := net.ListenPacket("ip6:ipv6-icmp", at.own.String())
	if err != nil {
		return nil, err
	}
	l := &link{at: at, conn: ipv6.NewPacketConn(raw), hardware: i.HardwareAddr, found: found, solicited: make(chan struct{}, 1), done: make(chan struct{})}
	var filter ipv6.ICMPFilter
	filter.SetAll(true)
	filter.Accept(ipv6.ICMPTypeRouterSolicitation)
	filter.Accept(ipv6.ICMPTypeRouterAdvertisement)
	err = errors.Join(l.conn.SetICMPFilter(&filter), l.conn.SetControlMessage(ipv6.FlagHopLimit, true), l.conn.SetMulticastHopLimit(hops),
		l.conn.SetMulticastInterface(i), l.conn.JoinGroup(i, &net.IPAddr{IP: allNodes}), l.conn.JoinGroup(i, &net.IPAddr{IP: allRouters}))
	if err != nil {
		raw.Close()
		return nil, err
	}
	go l.receive()
	go l.send()
	return l, nil
}

func (l *link) close() {
	close(l.done)
	l.conn.Close()
}

// receive takes packets until the link is closed.
func (l *link) receive() {
	b := make([]byte, 1500)
	for {
		n, control, from, err := l.conn.ReadFrom(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || control == nil || control.HopLimit != hops {
			continue
		}
		a, _ := from.(*net.IPAddr)
		source, _ := netip.AddrFromSlice(a.IP)
		source = source.WithZone(l.at.own.Zone())
		switch {
		case n >= solicitationHeader && b[0] == solicitation && source != l.at.own:
			l.due()
		case sentByRouter(b[:n]) && source.IsLinkLocalUnicast() && l.record(source, time.Now()):
			l.found()
		}
	}
}

// due makes an advertisement due.
func (l *link) due() {
	select {
	case l.solicited <- struct{}{}:
	default:
	}
}

// send advertises the node until the link is closed, and solicits advertisements while no session is
// established: the router may have another address, or not have been there for the last one. What
// cannot be sent, such as without a carrier, is sent next time.
func (l *link) send() {
	for {
		_, _ = l.conn.WriteTo(advertise(l.hardware), nil, &net.IPAddr{IP: allNodes, Zone: l.at.own.Zone()})
		if l.waits() {
			_, _ = l.conn.WriteTo(solicit(l.hardware), nil, &net.IPAddr{IP: allRouters, Zone: l.at.own.Zone()})
		}
		least, next := time.After(gap), time.After(every)
		select {
		case <-l.done:
			return
		case <-next:
			continue
		case <-l.solicited:
		}
		select {
		case <-l.done:
			return
		case <-least:
		}
	}
}
