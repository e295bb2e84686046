package vrrp

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// ExtensionHeaders are the IPv6 extension headers accepted before an advert: hop-by-hop
// options, routing, destination options (RFC 8200 section 4).
var ExtensionHeaders = [...]byte{0, 43, 60}

// Packet is an IP packet that carries VRRP.
type Packet struct {
	Source, Destination netip.Addr
	TTL                 int // or hop limit
	Payload             []byte
}

// ParsePacket parses an IP packet with VRRP: RFC 791 section 3.1, RFC 8200 sections 3 and
// 4. Fragments are not accepted. The payload is a part of b.
func ParsePacket(b []byte) (p Packet, ok bool) {
	switch {
	case len(b) >= 20 && b[0]>>4 == 4:
		size, length := int(b[0]&15)*4, int(binary.BigEndian.Uint16(b[2:]))
		if b[9] != Protocol || size < 20 || size > length || length > len(b) || binary.BigEndian.Uint16(b[6:])&0x3fff != 0 {
			return p, false
		}
		p.TTL = int(b[8])
		p.Source, _ = netip.AddrFromSlice(b[12:16])
		p.Destination, _ = netip.AddrFromSlice(b[16:20])
		p.Payload = b[size:length]
		return p, true
	case len(b) >= 40 && b[0]>>4 == 6:
		p.TTL = int(b[7])
		p.Source, _ = netip.AddrFromSlice(b[8:24])
		p.Destination, _ = netip.AddrFromSlice(b[24:40])
		length := 40 + int(binary.BigEndian.Uint16(b[4:]))
		if length > len(b) {
			return p, false
		}
		next, rest := b[6], b[40:length]
		for slices.Contains(ExtensionHeaders[:], next) {
			if len(rest) < 2 || len(rest) < 8*(1+int(rest[1])) {
				return p, false
			}
			next, rest = rest[0], rest[8*(1+int(rest[1])):]
		}
		p.Payload = rest
		return p, next == Protocol
	}
	return p, false
}

// Marshal returns the packet with its IP header: RFC 791 section 3.1, where the kernel
// fills in the checksum (raw(7)), and RFC 8200 section 3.
func (p *Packet) Marshal() []byte {
	var header []byte
	if p.Destination.Is4() {
		header = []byte{0x45, 0, 0, 0, 0, 0, 0, 0, byte(p.TTL), Protocol, 0, 0}
		binary.BigEndian.PutUint16(header[2:], uint16(20+len(p.Payload)))
	} else {
		header = []byte{0x60, 0, 0, 0, 0, 0, Protocol, byte(p.TTL)}
		binary.BigEndian.PutUint16(header[4:], uint16(len(p.Payload)))
	}
	return slices.Concat(header, p.Source.AsSlice(), p.Destination.AsSlice(), p.Payload)
}
