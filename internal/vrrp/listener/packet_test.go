package listener

import (
	"encoding/hex"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/testkit"
)

// Only what arrives for this host counts.
func TestPackets(t *testing.T) {
	raw, _ := hex.DecodeString("4500002000000000ff700000" + "c000020bc0000209" + "316d3c01000a0000c0000205")
	for kind, want := range map[uint8]bool{unix.PACKET_HOST: true, unix.PACKET_MULTICAST: true, unix.PACKET_OUTGOING: false, unix.PACKET_OTHERHOST: false} {
		p, link, ok := linkPacket(raw, nil, &unix.SockaddrLinklayer{Ifindex: 3, Pkttype: kind})
		if ok != want || ok && (link != 3 || p.TTL != 255) {
			t.Errorf("kind %d: %t, link %d, %+v", kind, ok, link, p)
		}
	}
	_, _, linked := linkPacket(raw, nil, &unix.SockaddrInet4{})
	_, _, six := packet6(raw, nil, &unix.SockaddrInet4{})
	testkit.Equal(t, false, linked || six)
}
