package tickle

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/vipgen/vipgen/internal/vrrp"
)

const (
	tcp       = 6    // RFC 9293
	ack       = 0x10 // RFC 9293 section 3.1
	dataStart = 5    // of a header without options, in words of 4 bytes
)

// segment is an ACK of a connection from a port of the VIP to a client, with that
// sequence number.
func segment(vip netip.Addr, port uint16, client netip.AddrPort, number uint32) []byte {
	var b []byte
	b = binary.BigEndian.AppendUint16(b, port)
	b = binary.BigEndian.AppendUint16(b, client.Port())
	b = binary.BigEndian.AppendUint32(b, number)
	b = append(b, 0, 0, 0, 0, dataStart<<4, ack, 0, 0, 0, 0, 0, 0)
	pseudo := binary.BigEndian.AppendUint16([]byte{0, tcp}, uint16(len(b)))
	sum := vrrp.Checksum(slices.Concat(vip.AsSlice(), client.Addr().AsSlice(), pseudo, b))
	binary.BigEndian.PutUint16(b[16:], sum)
	return b
}

// At most burst segments are sent each pause: 5,000 a second, so that the clients of a
// large cluster do not come back all at once.
const (
	burst = 50
	pause = 10 * time.Millisecond
)

// tickle sends each client of a VIP one segment. It fails where the VIP is not on this
// node.
func tickle(ctx context.Context, vip netip.Addr, ports map[uint16][]netip.AddrPort, number uint32) error {
	network := "ip6:tcp"
	if vip.Is4() {
		network = "ip4:tcp"
	}
	conn, err := net.ListenIP(network, &net.IPAddr{IP: vip.AsSlice()})
	if err != nil {
		return err
	}
	defer conn.Close()
	// The kernel also gives this socket a copy of whatever comes to the VIP.
	if err := conn.SetReadBuffer(1); err != nil {
		return err
	}
	var failed error
	sent := 0
	for port, clients := range ports {
		for _, client := range clients {
			if sent++; sent%burst == 0 {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(pause):
				}
			}
			// One client that has no route does not keep the others waiting.
			if _, err := conn.WriteToIP(segment(vip, port, client, number), &net.IPAddr{IP: client.Addr().AsSlice()}); err != nil {
				failed = fmt.Errorf("%s: %w", client, err)
			}
		}
	}
	return failed
}
