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

// acknowledged are the acknowledgment numbers of a client's segments. A gateway with Linux 5.18
// or newer that follows a connection (nf_conntrack's tcp_in_window) discards numbers that are
// ahead of it and forwards those that are behind, as delayed ones. Of two numbers half of the
// space apart one is behind, of the rounds' sequence numbers as well.
var acknowledged = [...]uint32{0, 1 << 31}

// segment returns an ACK from a port of the VIP to a client, with a sequence number and an
// acknowledgment number.
func segment(vip netip.Addr, port uint16, client netip.AddrPort, number, acknowledged uint32) []byte {
	var b []byte
	b = binary.BigEndian.AppendUint16(b, port)
	b = binary.BigEndian.AppendUint16(b, client.Port())
	b = binary.BigEndian.AppendUint32(b, number)
	b = binary.BigEndian.AppendUint32(b, acknowledged)
	b = append(b, dataStart<<4, ack, 0, 0, 0, 0, 0, 0)
	pseudo := binary.BigEndian.AppendUint16([]byte{0, tcp}, uint16(len(b)))
	sum := vrrp.Checksum(slices.Concat(vip.AsSlice(), client.Addr().AsSlice(), pseudo, b))
	binary.BigEndian.PutUint16(b[16:], sum)
	return b
}

// At most burst segments are sent each pause, 5,000 a second, so that the clients of a
// large cluster do not reconnect all at once.
const (
	burst = 50
	pause = 10 * time.Millisecond
)

// tickle sends each client of a VIP a segment for each of acknowledged. It fails if the VIP is not on this node.
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
	// The kernel also copies all packets to the VIP to this socket.
	if err := conn.SetReadBuffer(1); err != nil {
		return err
	}
	var failed error
	sent := 0
	for port, clients := range ports {
		for _, client := range clients {
			if sent += len(acknowledged); sent%burst == 0 {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(pause):
				}
			}
			for _, a := range acknowledged {
				// A client without a route does not delay the others.
				if _, err := conn.WriteToIP(segment(vip, port, client, number, a), &net.IPAddr{IP: client.Addr().AsSlice()}); err != nil {
					failed = fmt.Errorf("%s: %w", client, err)
				}
			}
		}
	}
	return failed
}
