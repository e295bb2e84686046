package vrrp

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	out, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	testkit.Must(t, err)
	return out
}

func FuzzAdvert(f *testing.F) {
	f.Add(false, unhex(f, "31 6d 3c 01 000a 0000 c0000205"))
	f.Add(true, unhex(f, "31 6d 3c 01 0019 0000 20010db8000000000000000000000005"))
	f.Add(false, unhex(f, "21 6d 44 01 01 01 0000 c0000205 64656d6f5f617069"))
	f.Fuzz(func(t *testing.T, six bool, payload []byte) {
		source := netip.MustParseAddr("192.0.2.11")
		if six {
			source = netip.MustParseAddr("fe80::aa0")
		}
		a, err := ParseAdvert(source, payload)
		if err != nil {
			return
		}
		if len(a.VIPs) != int(payload[3]) || a.Interval < 0 || a.Interval > 255*time.Second || a.DownInterval() < 3*a.Interval {
			t.Errorf("advert %+v of %x", a, payload)
		}
		for _, vip := range a.VIPs {
			testkit.Equal(testkit.In(t, vip, source), source.BitLen(), vip.BitLen())
		}
	})
}

// FuzzPacket: a packet of any host on the link parses to an advertisement within the packet, or
// to none.
func FuzzPacket(f *testing.F) {
	f.Add(unhex(f, "45000020 00000000 ff70 0000 c000020b c0000209 316d3c01000a0000c0000205"))
	f.Add(unhex(f, "60000000 0018 70 ff 20010db800000000000000000000000b 20010db8000000000000000000000009 316d3c010019000020010db8000000000000000000000005"))
	f.Add(unhex(f, "60000000 0020 3c ff 20010db800000000000000000000000b 20010db8000000000000000000000009 7000000000000000 316d3c010019000020010db8000000000000000000000005"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, ok := ParsePacket(b)
		if !ok {
			return
		}
		if !p.Source.IsValid() || p.Source.Is4() != p.Destination.Is4() || len(p.Payload) > len(b)-20 {
			t.Errorf("packet %+v of %x", p, b)
		}
	})
}

// Fragments, other protocols and partial packets are not advertisements.
func TestNoPacket(t *testing.T) {
	const begin, end = "c000020b c0000209", "316d3c01000a0000c0000205"
	for name, header := range map[string]string{
		"more fragments": "45000020 00002000 ff70 0000", "a later fragment": "45000020 00000001 ff70 0000", "TCP": "45000020 00000000 ff06 0000",
		"a short header": "44000020 00000000 ff70 0000", "a header longer than the packet": "4f000020 00000000 ff70 0000", "cut off": "45000021 00000000 ff70 0000",
	} {
		if p, ok := ParsePacket(unhex(t, header+begin+end)); ok {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// TestExtensionHeaders: an advertisement behind an extension header is parsed.
func TestExtensionHeaders(t *testing.T) {
	p, ok := ParsePacket(unhex(t, "60000000 0020 3c ff 20010db800000000000000000000000b 20010db8000000000000000000000009 7000000000000000 316d3c010019000020010db8000000000000000000000005"))
	a, err := ParseAdvert(p.Source, p.Payload)
	if !ok || err != nil || a.RouterID != 0x6d {
		t.Errorf("%v, %v, %+v", ok, err, a)
	}
}

// A built packet parses to its input, and begins like those of keepalived 2.2.7.
func TestMarshal(t *testing.T) {
	for _, tt := range []struct {
		name, to string
		advert   Advert
		want     string
	}{
		{"VRRPv3", "224.0.0.18", Advert{netip.MustParseAddr("192.0.2.11"), 3, 109, 60, 100 * time.Millisecond, []netip.Addr{netip.MustParseAddr("192.0.2.5")}},
			"31 6d 3c 01 000a"},
		{"VRRPv3 over IPv6", "ff02::12", Advert{netip.MustParseAddr("fe80::aa0"), 3, 109, 60, 250 * time.Millisecond, []netip.Addr{netip.MustParseAddr("2001:db8::5")}},
			"31 6d 3c 01 0019"},
		{"VRRPv2", "192.0.2.12", Advert{netip.MustParseAddr("192.0.2.11"), 2, 109, 68, time.Second, []netip.Addr{netip.MustParseAddr("192.0.2.5")}},
			"21 6d 44 01 0001 d88a c0000205 0000000000000000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			to := netip.MustParseAddr(tt.to)
			payload := tt.advert.Marshal(to)
			if want := unhex(t, tt.want); !bytes.HasPrefix(payload, want) {
				t.Errorf("%x, want %x first", payload, want)
			}
			packet := Packet{tt.advert.Source, to, 255, payload}
			p, ok := ParsePacket(packet.Marshal())
			if !ok || !reflect.DeepEqual(p, packet) {
				t.Fatalf("%v, %+v", ok, p)
			}
			got, err := ParseAdvert(p.Source, p.Payload)
			if err != nil || !reflect.DeepEqual(got, &tt.advert) {
				t.Errorf("%v, %+v", err, got)
			}
			if to.Is4() && tt.advert.Version == 2 && Checksum(payload) != 0 {
				t.Errorf("the checksum of %x is wrong", payload)
			}
		})
	}
}
