package attack

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

const (
	protocolVRRP = 112 // RFC 9568 section 5.1.1.4
	// highest is the highest priority of one who does not own the address (RFC 9568
	// section 5.2.4).
	highest = 254
)

// Source is whose address a packet comes from.
type Source int

// Sources.
const (
	Own Source = iota
	Peer
	Nobody
)

// VRRP is an advertisement that no node of a group sends: all but for one thing is
// right.
type VRRP struct {
	Name    string
	Version byte
	// Interval is as it stands in the packet: in centiseconds with VRRPv3, in seconds
	// with VRRPv2.
	Interval uint16
	TTL      byte
	Source   Source
	// Broken gives it a wrong checksum.
	Broken bool
}

// VRRPs are advertisements against a group that speaks VRRPv3.
var VRRPs = []VRRP{
	{Name: "stranger", Version: 3, Interval: 10, TTL: 255},
	{Name: "unknown-source", Version: 3, Interval: 10, TTL: 255, Source: Nobody},
	{Name: "ttl-10", Version: 3, Interval: 10, TTL: 10},
	{Name: "ttl-10-of-a-peer", Version: 3, Interval: 10, TTL: 10, Source: Peer},
	{Name: "wrong-version", Version: 2, Interval: 1, TTL: 255},
	{Name: "wrong-checksum", Version: 3, Interval: 10, TTL: 255, Broken: true},
}

// Packet is the advertisement for a VIP: RFC 3768 section 5.1, RFC 9568 section 5.2.
func (v VRRP) Packet(routerID int, vip, from, to netip.Addr) Packet {
	advert := append([]byte{v.Version<<4 | 1, byte(routerID), highest, 1, 0, 0, 0, 0}, vip.AsSlice()...)
	binary.BigEndian.PutUint16(advert[4:], v.Interval)
	if v.Version == 2 && to.Is4() {
		advert = append(advert, make([]byte, 8)...) // authentication data
	}
	var pseudo []byte
	if v.Version == 3 || to.Is6() { // in IPv6 keepalived has the kernel look at it
		pseudo = slices.Concat(from.AsSlice(), to.AsSlice(), []byte{0, protocolVRRP, 0, byte(len(advert))})
	}
	sum := checksum(append(pseudo, advert...))
	if v.Broken {
		sum++
	}
	binary.BigEndian.PutUint16(advert[6:], sum)
	return Packet{To: netip.AddrPortFrom(to, 0), Data: slices.Concat(header(v.TTL, len(advert), from, to), advert)}
}

// header is that of IP before a payload of so many bytes: RFC 791 section 3.1, where
// the kernel fills in the checksum (raw(7)), and RFC 8200 section 3.
func header(ttl byte, payload int, from, to netip.Addr) []byte {
	if to.Is4() {
		ip := []byte{0x45, 0, 0, byte(20 + payload), 0, 0, 0, 0, ttl, protocolVRRP, 0, 0}
		return slices.Concat(ip, from.AsSlice(), to.AsSlice())
	}
	return slices.Concat([]byte{0x60, 0, 0, 0, 0, byte(payload), protocolVRRP, ttl}, from.AsSlice(), to.AsSlice())
}

// checksum is that of IP (RFC 1071).
func checksum(b []byte) uint16 {
	var sum uint32
	for ; len(b) > 1; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// VRRPGroup is where advertisements go in multicast mode: RFC 9568, sections 5.1.1.2
// and 5.1.2.2.
func VRRPGroup(ipv6 bool) netip.Addr {
	if ipv6 {
		return netip.MustParseAddr("ff02::12")
	}
	return netip.MustParseAddr("224.0.0.18")
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Addr: a.Addr().As4(), Port: int(a.Port())}
	}
	return &unix.SockaddrInet6{Addr: a.Addr().As16(), Port: int(a.Port())}
}
