package watch

import (
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// Frames as keepalived 2.2.7 and the kernel send them.
const (
	ethernet4 = "01005e000012 0200000000aa 0800"
	ethernet6 = "333300000012 0200000000aa 86dd"
	arpHeader = "ffffffffffff 0200000000aa 0806 0001 0800 06 04"
	// From 192.0.2.11 to 224.0.0.18.
	ip4 = "45c0 0020 0001 0000 ff70 0000 c000020b e0000012"
	// From fe80::aa to ff02::12.
	ip6VRRP = "6c000000 0018 70 ff fe800000000000000000000000000aa0 ff020000000000000000000000000012"
	ip6ICMP = "60000000 0018 3a ff fe800000000000000000000000000aa0 ff020000000000000000000000000001"
	v3      = "31 6d 3c 01 000a 0000 c0000205"
	v3ip6   = "31 6d 3c 01 0019 0000 20010db8000000000000000000000005"
	v2      = "21 6d 44 01 01 01 0000 c0000205 64656d6f5f617069"
	v2ip    = "45c0 0028 0001 0000 ff70 0000 c000020b e0000012"
)

func unhex(t testing.TB, text ...string) []byte {
	t.Helper()
	data, err := hex.DecodeString(strings.ReplaceAll(strings.Join(text, ""), " ", ""))
	testkit.Must(t, err)
	return data
}

func TestParse(t *testing.T) {
	tests := []struct {
		name   string
		frame  []byte
		ok     bool
		claims string // an address, or the VIPs of an advert
		advert *vrrp.Advert
	}{
		{"VRRPv3", unhex(t, ethernet4, ip4, v3), true, "192.0.2.5",
			&vrrp.Advert{Version: 3, RouterID: 109, Priority: 60, Interval: 100 * time.Millisecond, Source: netip.MustParseAddr("192.0.2.11")}},
		{"VRRPv3 with the padding of a short frame", unhex(t, ethernet4, ip4, v3, strings.Repeat("00", 16)), true, "192.0.2.5",
			&vrrp.Advert{Version: 3, RouterID: 109, Priority: 60, Interval: 100 * time.Millisecond, Source: netip.MustParseAddr("192.0.2.11")}},
		{"VRRPv3 over IPv6", unhex(t, ethernet6, ip6VRRP, v3ip6), true, "2001:db8::5",
			&vrrp.Advert{Version: 3, RouterID: 109, Priority: 60, Interval: 250 * time.Millisecond, Source: netip.MustParseAddr("fe80::aa0")}},
		{"VRRPv2 with a password", unhex(t, ethernet4, v2ip, v2), true, "192.0.2.5",
			&vrrp.Advert{Version: 2, RouterID: 109, Priority: 68, Interval: time.Second, Source: netip.MustParseAddr("192.0.2.11")}},
		{"ARP announcement", unhex(t, arpHeader, "0001 0200000000aa c0000205 000000000000 c0000205"), true, "192.0.2.5", nil},
		{"ARP answer", unhex(t, arpHeader, "0002 0200000000aa c0000205 0200000000bb c0000264"), true, "192.0.2.5", nil},
		{"ARP question", unhex(t, arpHeader, "0001 0200000000aa c0000264 000000000000 c0000205"), true, "192.0.2.100", nil},
		{"ARP probe", unhex(t, arpHeader, "0001 0200000000aa 00000000 000000000000 c0000205"), true, "0.0.0.0", nil},
		{"neighbour advertisement", unhex(t, ethernet6, ip6ICMP, "8800 0000 20000000 20010db8000000000000000000000005"), true, "2001:db8::5", nil},
		{"cut advert", unhex(t, ethernet4, "45c0 001c 0001 0000 ff70 0000 c000020b e0000012 316d3c01000a0000"), false, "", nil},
		{"unknown version", unhex(t, ethernet4, ip4, "41 6d 3c 01 000a 0000 c0000205"), false, "", nil},
		{"unknown type", unhex(t, ethernet4, ip4, "32 6d 3c 01 000a 0000 c0000205"), false, "", nil},
		{"TCP", unhex(t, ethernet4, "4500 0020 0001 0000 4006 0000 c000020b c0000205", v3), false, "", nil},
		{"cut ARP", unhex(t, arpHeader, "0001 0200"), false, "", nil},
		{"nothing", nil, false, "", nil},
	}
	p := newParser()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := p.parse(tt.frame)
			if ok != tt.ok || (got.advert != nil) != (tt.advert != nil) {
				t.Fatalf("parsed %+v, %v", got, ok)
			}
			if !ok {
				return
			}
			claims := []netip.Addr{got.claimed}
			if a := got.advert; a != nil {
				claims = a.VIPs
				if a.Version != tt.advert.Version || a.RouterID != tt.advert.RouterID || a.Priority != tt.advert.Priority ||
					a.Interval != tt.advert.Interval || a.Source != tt.advert.Source {
					t.Errorf("advert %+v, want %+v", a, tt.advert)
				}
			}
			if !slices.Equal(claims, []netip.Addr{netip.MustParseAddr(tt.claims)}) {
				t.Errorf("claims %v, want %s", claims, tt.claims)
			}
		})
	}
}

func FuzzFrame(f *testing.F) {
	for _, frame := range [][]byte{
		unhex(f, ethernet4, ip4, v3), unhex(f, ethernet6, ip6VRRP, v3ip6), unhex(f, ethernet4, v2ip, v2),
		unhex(f, arpHeader, "0002 0200000000aa c0000205 0200000000bb c0000264"),
		unhex(f, ethernet6, ip6ICMP, "8800 0000 20000000 20010db8000000000000000000000005"),
	} {
		f.Add(frame)
	}
	p := newParser()
	f.Fuzz(func(t *testing.T, frame []byte) {
		got, ok := p.parse(frame)
		if ok && got.advert == nil && !got.claimed.IsValid() {
			t.Errorf("parsed without a claim: %+v", got)
		}
	})
}
