package vrrp

import (
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	out, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
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
			if vip.BitLen() != source.BitLen() {
				t.Errorf("VIP %v from %v", vip, source)
			}
		}
	})
}

// FuzzPacket: what a host on the link sends is an advert within the packet, or nothing.
func FuzzPacket(f *testing.F) {
	f.Add(unhex(f, "45000020 00000000 ff70 0000 c000020b c0000209 316d3c01000a0000c0000205"))
	f.Add(unhex(f, "60000000 0018 70 ff 20010db800000000000000000000000b 20010db8000000000000000000000009 316d3c010019000020010db8000000000000000000000005"))
	f.Add(unhex(f, "60000000 0020 3c ff 20010db800000000000000000000000b 20010db8000000000000000000000009 7000000000000000 316d3c010019000020010db8000000000000000000000005"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, ok := parse(b)
		if !ok {
			return
		}
		if !p.source.IsValid() || p.source.Is4() != p.destination.Is4() || len(p.payload) > len(b)-20 {
			t.Errorf("packet %+v of %x", p, b)
		}
	})
}

// TestExtensionHeaders: an advert behind an extension header is one.
func TestExtensionHeaders(t *testing.T) {
	p, ok := parse(unhex(t, "60000000 0020 3c ff 20010db800000000000000000000000b 20010db8000000000000000000000009 7000000000000000 316d3c010019000020010db8000000000000000000000005"))
	a, err := ParseAdvert(p.source, p.payload)
	if !ok || err != nil || a.RouterID != 0x6d {
		t.Errorf("%v, %v, %+v", ok, err, a)
	}
}
