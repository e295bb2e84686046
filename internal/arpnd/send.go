package arpnd

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/vrrp"
)

// Announce announces that an address of this host is at a link, to all of its neighbours:
//
//   - Request: an ARP announcement (RFC 5227, section 3)
//   - Reply: the other form of gratuitous ARP (RFC 5944, section 4.6)
//   - Advertisement: unsolicited, with the override flag (RFC 4861, section 7.2.6)
func Announce(link *net.Interface, a netip.Addr, form Form) error {
	at := [6]byte(link.HardwareAddr)
	switch form {
	case Advertisement:
		return sendAdvertisement(link.Index, at, a)
	case Reply:
		return sendFrame(link.Index, unix.ETH_P_ARP, broadcast, arp(opReply, at, a, at, a))
	}
	return sendFrame(link.Index, unix.ETH_P_ARP, broadcast, arp(opRequest, at, a, [6]byte{}, a))
}

// Ask asks all hosts of a link which one has an address, from an address of this host. With
// an unspecified source it is a probe for a duplicate, which claims nothing: RFC 5227,
// section 2.1.1, and RFC 4862, section 5.4.2.
func Ask(link *net.Interface, source, a netip.Addr) error {
	at := [6]byte(link.HardwareAddr)
	if a.Is4() {
		return sendFrame(link.Index, unix.ETH_P_ARP, broadcast, arp(opRequest, at, source, [6]byte{}, a))
	}
	to, group := solicitedNode(a)
	return sendFrame(link.Index, unix.ETH_P_IPV6, group, solicitation(at, source, to, a))
}

var broadcast = [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// arp returns an ARP packet of Ethernet and IPv4 (RFC 826).
func arp(operation uint16, sender [6]byte, source netip.Addr, target [6]byte, destination netip.Addr) (p []byte) {
	const ethernet = 1
	for _, word := range []uint16{ethernet, unix.ETH_P_IP, 6<<8 | 4, operation} {
		p = binary.BigEndian.AppendUint16(p, word)
	}
	return slices.Concat(p, sender[:], source.AsSlice(), target[:], destination.AsSlice())
}

// solicitedNode returns the group of an address (RFC 4291, section 2.7.1), and its link
// address (RFC 2464, section 7).
func solicitedNode(a netip.Addr) (netip.Addr, [6]byte) {
	group, low := netip.MustParseAddr("ff02::1:ff00:0").As16(), a.As16()
	copy(group[13:], low[13:])
	return netip.AddrFrom16(group), [6]byte{0x33, 0x33, 0xff, low[13], low[14], low[15]}
}

// solicitation returns an IPv6 packet with a neighbour solicitation (RFC 4861, section
// 4.3), which has no link address if the source is unspecified.
func solicitation(at [6]byte, source, to, a netip.Addr) []byte {
	body := append([]byte{neighbourSolicitation, 0, 0, 0, 0, 0, 0, 0}, a.AsSlice()...)
	if !source.IsUnspecified() {
		body = append(body, append([]byte{sourceLinkAddress, 1}, at[:]...)...)
	}
	size := binary.BigEndian.AppendUint16(nil, uint16(len(body)))
	sum := vrrp.Checksum(slices.Concat(source.AsSlice(), to.AsSlice(), size, []byte{0, unix.IPPROTO_ICMPV6}, body))
	binary.BigEndian.PutUint16(body[2:], sum)
	return slices.Concat([]byte{6 << 4, 0, 0, 0}, size, []byte{unix.IPPROTO_ICMPV6, 255}, source.AsSlice(), to.AsSlice(), body)
}

// sendFrame sends a packet of an Ethernet protocol to a link address.
func sendFrame(link int, protocol uint16, to [6]byte, packet []byte) error {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	address := &unix.SockaddrLinklayer{Protocol: protocol>>8 | protocol<<8, Ifindex: link, Halen: 6}
	copy(address.Addr[:], to[:])
	return unix.Sendto(fd, packet, 0, address)
}

// sendAdvertisement sends a neighbour advertisement from the address to all nodes on the
// link. The kernel fills in the checksum.
func sendAdvertisement(link int, at [6]byte, a netip.Addr) error {
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
	if err := unix.Bind(fd, &unix.SockaddrInet6{Addr: a.As16()}); err != nil {
		return err
	}
	const override = 0x20
	p := slices.Concat([]byte{neighbourAdvertisement, 0, 0, 0, override, 0, 0, 0}, a.AsSlice(), []byte{targetLinkAddress, 1}, at[:])
	allNodes := netip.IPv6LinkLocalAllNodes()
	return unix.Sendto(fd, p, 0, &unix.SockaddrInet6{Addr: allNodes.As16(), ZoneId: uint32(link)})
}
