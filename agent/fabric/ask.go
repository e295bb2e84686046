package fabric

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/arpnd"
	"github.com/vipgen/vipgen/internal/vrrp"
)

const (
	askTimes  = 3                      // RFC 5227, section 1.1: PROBE_NUM
	askEvery  = 400 * time.Millisecond // Linux as a proxy answers after up to 800 ms
	alsoAsked = 4                      // further addresses, to recognize proxy ARP
)

// ask returns the MAC addresses that answer for an address. An unspecified source makes it
// a probe for duplicates: see arpnd.Ask.
func (s *station) ask(ctx context.Context, source, a netip.Addr) (out []net.HardwareAddr, err error) {
	conn, err := arpnd.Open(s.link, a)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	for range askTimes {
		if err := arpnd.Ask(s.link, source, a); err != nil {
			return nil, fmt.Errorf("asking for %v: %w", a, err)
		}
		ctx, cancel := context.WithTimeout(ctx, askEvery)
		for ctx.Err() == nil {
			b := make([]byte, 256)
			n, from, err := conn.Recvfrom(ctx, b, 0)
			at, _ := from.(*unix.SockaddrLinklayer)
			if err != nil || at == nil {
				continue
			}
			c := arpnd.Parse(b[:n])
			if c.MAC == nil {
				c.MAC = at.Addr[:6]
			}
			if c.Address == a && !has(out, c.MAC) {
				out = append(out, c.MAC)
			}
		}
		cancel()
		if len(out) > 0 {
			break
		}
	}
	return out, nil
}

// search returns the MAC addresses that answer for the address although it should be
// unused, and other addresses for which one of them answers too, as proxy ARP does.
func (s *station) search(ctx context.Context) (macs []net.HardwareAddr, others []netip.Addr, err error) {
	for _, source := range []netip.Addr{s.own, unspecified(s.address)} {
		found, err := s.ask(ctx, source, s.address)
		if err != nil {
			return nil, nil, err
		}
		if macs = found; len(macs) > 0 {
			break
		}
	}
	if len(macs) == 0 {
		return nil, nil, nil
	}
	for a, n := s.address.Next(), 0; n < alsoAsked && s.subnet.Contains(a); a, n = a.Next(), n+1 {
		found, err := s.ask(ctx, s.own, a)
		if err != nil {
			return nil, nil, err
		}
		if slices.ContainsFunc(found, func(m net.HardwareAddr) bool { return has(macs, m) }) {
			others = append(others, a)
		}
	}
	return macs, others, nil
}

func has(list []net.HardwareAddr, m net.HardwareAddr) bool {
	return slices.ContainsFunc(list, func(x net.HardwareAddr) bool { return bytes.Equal(x, m) })
}

func unspecified(a netip.Addr) netip.Addr {
	if a.Is6() {
		return netip.IPv6Unspecified()
	}
	return netip.IPv4Unspecified()
}

// advertise sends VRRP advertisements to the multicast group and to the other node: version
// 3, with the TTL that receivers require (RFC 9568, sections 5.1.1.3 and 5.1.2.3). The
// priority is the lowest one: no router yields to it.
func (s *station) advertise(ctx context.Context, id uint8) error {
	network := "ip4:112"
	if s.own.Is6() {
		network = "ip6:112"
	}
	conn, err := net.ListenIP(network, &net.IPAddr{IP: s.own.AsSlice()})
	if err != nil {
		return err
	}
	defer conn.Close()
	if s.own.Is6() {
		p := ipv6.NewPacketConn(conn)
		err = errors.Join(p.SetHopLimit(255), p.SetMulticastHopLimit(255), p.SetMulticastInterface(s.link), p.SetMulticastLoopback(false))
	} else {
		p := ipv4.NewPacketConn(conn)
		err = errors.Join(p.SetTTL(255), p.SetMulticastTTL(255), p.SetMulticastInterface(s.link), p.SetMulticastLoopback(false))
	}
	if err != nil {
		return err
	}
	advert := vrrp.Advert{Source: s.own, Version: 3, RouterID: id, Priority: vrrp.LowestPriority, Interval: time.Second, VIPs: []netip.Addr{s.address}}
	for _, to := range []netip.Addr{vrrp.MulticastGroup(s.own.Is6()), s.peer} {
		for range adverts {
			if _, err := conn.WriteToIP(advert.Marshal(to), &net.IPAddr{IP: to.AsSlice()}); err != nil {
				return fmt.Errorf("sending VRRP to %v: %w", to, err)
			}
			pause(ctx, packetGap)
		}
	}
	return nil
}

// advertised returns how many of the other node's advertisements arrived in a mode, and
// the lowest TTL.
func (s *station) advertised(ctx context.Context, id uint8, mode string) (n, ttl int) {
	for deadline := time.Now().Add(receiveWithin); n < adverts && time.Now().Before(deadline) && pause(ctx, packetGap); {
		for _, r := range s.scan.Routers() {
			if r.ID == int(id) && r.Source == s.peer && r.Mode == mode {
				n, ttl = r.Adverts, r.TTL
			}
		}
	}
	return n, ttl
}
