// Package arpnd sends and receives the packets by which hosts of an Ethernet link claim an
// address, or ask which host has it: ARP (RFC 826), or neighbour discovery with IPv6 (RFC
// 4861).
package arpnd

import (
	"encoding/binary"
	"net"
	"net/netip"

	"github.com/mdlayher/socket"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/vrrp/listener"
)

// Form is a kind of packet that claims an address.
type Form string

const (
	Request       Form = "arp-request"
	Reply         Form = "arp-reply"
	Advertisement Form = "neighbour-advertisement" // RFC 4861, section 4.4
)

// Forms returns the forms of an address family, the one that keepalived sends first.
func Forms(ipv6 bool) []Form {
	if ipv6 {
		return []Form{Advertisement}
	}
	return []Form{Request, Reply}
}

// Claim is the content of a packet about an address.
type Claim struct {
	// Address is the zero value if the packet claims none, 0.0.0.0 in an ARP probe.
	Address netip.Addr
	// MAC is the link address that neighbours store for it.
	MAC  net.HardwareAddr
	Form Form
	// Unsolicited: the claim answers no question. keepalived announces a VIP so, the kernel
	// of a host never does.
	Unsolicited bool
}

// Sizes and values of packets.
const (
	arpLength              = 28 // of Ethernet and IPv4: RFC 826
	ipv6Header             = 40
	advertisementLength    = 24 // without options: RFC 4861, section 4.4
	linkOption             = 8  // with a link address: RFC 4861, section 4.6.1
	neighbourSolicitation  = 135
	neighbourAdvertisement = 136
	sourceLinkAddress      = 1
	targetLinkAddress      = 2
	opRequest, opReply     = 1, 2
)

// Parse parses an ARP packet, or an IPv6 packet with a neighbour advertisement. The sender
// of an ARP request or reply claims its sender address; a probe has none (RFC 5227, section
// 1.1).
func Parse(b []byte) (c Claim) {
	switch {
	case len(b) >= arpLength && b[0] == 0 && b[1] == 1 && b[2] == 8 && b[3] == 0 && b[4] == 6 && b[5] == 4:
		c.Address, _ = netip.AddrFromSlice(b[14:18])
		c.MAC = net.HardwareAddr(append([]byte(nil), b[8:14]...))
		c.Form = Request
		if b[7] == opReply {
			c.Form = Reply
		}
		target, _ := netip.AddrFromSlice(b[24:28])
		c.Unsolicited = target == c.Address // RFC 5227, section 1.1
	case len(b) >= ipv6Header+advertisementLength && b[0]>>4 == 6 && b[6] == unix.IPPROTO_ICMPV6 && b[7] == 255 && b[ipv6Header] == neighbourAdvertisement:
		c.Address, _ = netip.AddrFromSlice(b[ipv6Header+8 : ipv6Header+24]) // RFC 4861, section 7.1.2
		c.Form = Advertisement
		const solicited = 0x40
		c.Unsolicited = b[ipv6Header+4]&solicited == 0
		if o := b[ipv6Header+advertisementLength:]; len(o) >= linkOption && o[0] == targetLinkAddress && o[1] == 1 {
			c.MAC = net.HardwareAddr(append([]byte(nil), o[2:8]...))
		}
	}
	return c
}

// Open opens a socket that receives claims of an address on a link: ARP from its holder, or
// neighbour advertisements for it. The filter drops packets about other addresses.
func Open(l *net.Interface, a netip.Addr) (*socket.Conn, error) {
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
