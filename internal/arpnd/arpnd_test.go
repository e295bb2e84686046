package arpnd

import (
	"net/netip"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/vrrp"
)

func TestParse(t *testing.T) {
	arp := func(from string) []byte {
		b := []byte{0, 1, 8, 0, 6, 4, 0, 2, 1, 2, 3, 4, 5, 6}
		return append(append(b, netip.MustParseAddr(from).AsSlice()...), make([]byte, 10)...)
	}
	advertises := func(target string, kind, hops byte) []byte {
		b := make([]byte, 48)
		b[0], b[6], b[7], b[40] = 0x60, 58, hops, kind
		return append(b, netip.MustParseAddr(target).AsSlice()...)
	}
	for _, tt := range []struct {
		name   string
		packet []byte
		want   string
	}{
		{"ARP", arp("192.0.2.5"), "192.0.2.5"},
		{"a probe of ARP", arp("0.0.0.0"), "0.0.0.0"},
		{"a neighbour advertisement", advertises("2001:db8::5", 136, 255), "2001:db8::5"},
		{"one from beyond the link", advertises("2001:db8::5", 136, 254), ""},
		{"a neighbour solicitation", advertises("2001:db8::5", 135, 255), ""},
		{"half of ARP", arp("192.0.2.5")[:27], ""},
		{"nothing", nil, ""},
	} {
		want, _ := netip.ParseAddr(tt.want)
		testkit.Equal(testkit.In(t, tt.name), want, Parse(tt.packet).Address)
	}
}

func TestUnsolicited(t *testing.T) {
	b := make([]byte, 64) // a neighbour advertisement
	b[0], b[6], b[7], b[40] = 0x60, 58, 255, 136
	for flags, want := range map[byte]bool{0x20: true, 0x60: false} {
		b[44] = flags
		testkit.Equal(testkit.In(t, flags), want, Parse(b).Unsolicited)
	}
}

// What is sent is what is parsed.
func TestEncoding(t *testing.T) {
	mac := [6]byte{2, 0, 0, 0, 0, 9}
	vip, own, zero := netip.MustParseAddr("192.0.2.5"), netip.MustParseAddr("192.0.2.1"), netip.IPv4Unspecified()
	for what, tt := range map[string]struct {
		packet []byte
		want   Claim
	}{
		"announcement":   {arp(opRequest, mac, vip, [6]byte{}, vip), Claim{vip, mac[:], Request, true}},
		"gratuitous ARP": {arp(opReply, mac, vip, mac, vip), Claim{vip, mac[:], Reply, true}},
		"request":        {arp(opRequest, mac, own, [6]byte{}, vip), Claim{own, mac[:], Request, false}},
		"probe":          {arp(opRequest, mac, zero, [6]byte{}, vip), Claim{zero, mac[:], Request, false}},
	} {
		testkit.Equal(testkit.In(t, what), tt.want, Parse(tt.packet))
	}
}

// A solicitation to a solicited-node group has a valid checksum, and a link address only
// from a specified source.
func TestSolicitation(t *testing.T) {
	to, group := solicitedNode(netip.MustParseAddr("2001:db8::12:3456"))
	testkit.Equal(t, netip.MustParseAddr("ff02::1:ff12:3456"), to)
	testkit.Equal(t, [6]byte{0x33, 0x33, 0xff, 0x12, 0x34, 0x56}, group)
	for source, length := range map[string]int{"::": 24, "2001:db8::1": 32} {
		p := solicitation([6]byte{2, 0, 0, 0, 0, 9}, netip.MustParseAddr(source), to, netip.MustParseAddr("2001:db8::12:3456"))
		testkit.Equal(testkit.In(t, source), ipv6Header+length, len(p))
		pseudo := append(append([]byte{}, p[8:ipv6Header]...), 0, byte(length), 0, 58)
		testkit.Equal(testkit.In(t, source), 0, vrrp.Checksum(append(pseudo, p[ipv6Header:]...)))
	}
}

// FuzzParse reads any packet of the link.
func FuzzParse(f *testing.F) {
	f.Add([]byte{0, 1, 8, 0, 6, 4, 0, 2, 1, 2, 3, 4, 5, 6, 192, 0, 2, 5, 0, 0, 0, 0, 0, 0, 192, 0, 2, 5})
	f.Add(make([]byte, 64))
	f.Fuzz(func(t *testing.T, data []byte) {
		if c := Parse(data); c.Address.IsValid() && len(data) < arpLength {
			t.Errorf("%x: %v", data, c)
		}
	})
}
