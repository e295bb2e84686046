// Package vrrp implements VRRP without running it: advertisements and their packets,
// timers, the terms of a priority, and the members of a VIP's election. Package listener
// receives advertisements, keepalivedconf reads keepalived.conf.
package vrrp

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Protocol is the IP protocol number of VRRP: RFC 9568, section 5.1.1.4.
const Protocol = 112

// Priorities of a node that does not own the VIP as an address: 0 releases the VIP, 255
// is the owner's (RFC 9568 section 5.2.4).
const (
	LowestPriority  = 1
	HighestPriority = 254
)

// Destinations of advertisements in multicast mode: RFC 9568, sections 5.1.1.2 and
// 5.1.2.2.
var (
	MulticastGroup4 = netip.MustParseAddr("224.0.0.18")
	MulticastGroup6 = netip.MustParseAddr("ff02::12")
)

// MulticastGroup returns the group of an address family.
func MulticastGroup(ipv6 bool) netip.Addr {
	if ipv6 {
		return MulticastGroup6
	}
	return MulticastGroup4
}

// Advert is a VRRP advertisement: RFC 3768, section 5 (version 2), or RFC 9568,
// section 5 (version 3).
type Advert struct {
	Source   netip.Addr
	Version  int
	RouterID uint8
	Priority uint8 // 0: the sender releases the VIPs
	Interval time.Duration
	VIPs     []netip.Addr
}

const (
	advertHeader  = 8 // bytes
	advertisement = 1 // the only message type
	authData      = 8 // bytes after the addresses, with version 2 over IPv4
)

// ParseAdvert parses the payload of an IP packet. It leaves the checksum to the receiver
// that the advert is for.
func ParseAdvert(source netip.Addr, payload []byte) (*Advert, error) {
	if len(payload) < advertHeader {
		return nil, fmt.Errorf("an advert of %d bytes, want %d at least", len(payload), advertHeader)
	}
	a := &Advert{Source: source, Version: int(payload[0] >> 4), RouterID: payload[1], Priority: payload[2]}
	if kind := payload[0] & 15; kind != advertisement {
		return nil, fmt.Errorf("VRRP message of type %d, want %d", kind, advertisement)
	}
	if a.Version != 2 && a.Version != 3 {
		return nil, fmt.Errorf("VRRP version %d, want 2 or 3", a.Version)
	}
	a.Interval = time.Duration(binary.BigEndian.Uint16(payload[4:])&intervalBits(a.Version)) * intervalUnit(a.Version)
	size, count := source.BitLen()/8, int(payload[3])
	if size == 0 || len(payload) < advertHeader+count*size {
		return nil, fmt.Errorf("an advert of %d bytes for %d addresses of %d", len(payload), count, size)
	}
	for b := range slices.Chunk(payload[advertHeader:advertHeader+count*size], max(size, 1)) {
		addr, _ := netip.AddrFromSlice(b)
		a.VIPs = append(a.VIPs, addr)
	}
	return a, nil
}

// intervalUnit returns the unit of intervals in a version, intervalBits their bits in the
// two bytes before the checksum: in version 2 the first one is the authentication type.
func intervalUnit(version int) time.Duration {
	if version == 2 {
		return time.Second
	}
	return 10 * time.Millisecond
}

func intervalBits(version int) uint16 {
	if version == 2 {
		return 0xff
	}
	return 0xfff
}

// Marshal returns the payload of an IP packet with the advert from its source to a
// destination, without authentication. The VIPs have the source's family.
func (a *Advert) Marshal(destination netip.Addr) []byte {
	out := []byte{byte(a.Version)<<4 | advertisement, a.RouterID, a.Priority, byte(len(a.VIPs)), 0, 0, 0, 0}
	binary.BigEndian.PutUint16(out[4:], uint16(a.Interval/intervalUnit(a.Version))&intervalBits(a.Version))
	for _, vip := range a.VIPs {
		out = append(out, vip.AsSlice()...)
	}
	if a.Version == 2 && destination.Is4() {
		out = append(out, make([]byte, authData)...)
	}
	// Version 2 has no pseudo header, but over IPv6 keepalived lets the kernel verify
	// one.
	sum := out
	if a.Version == 3 || destination.Is6() {
		pseudo := binary.BigEndian.AppendUint16([]byte{0, Protocol}, uint16(len(out)))
		sum = slices.Concat(a.Source.AsSlice(), destination.AsSlice(), pseudo, out)
	}
	binary.BigEndian.PutUint16(out[6:], Checksum(sum))
	return out
}

// Checksum returns the IP checksum (RFC 1071) of an even number of bytes.
func Checksum(b []byte) uint16 {
	var sum uint32
	for ; len(b) > 1; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// DownInterval returns how long after the advert a backup of the sender's priority takes
// over.
func (a *Advert) DownInterval() time.Duration {
	return DownInterval(a.Version, a.Interval, int(a.Priority))
}

// AdvertisedPassword returns the part of a PASS password in an advert of version 2: 8
// bytes (RFC 2338 section 5.3.10).
func AdvertisedPassword(password string) string { return password[:min(authData, len(password))] }
