package neighbours

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

func TestClaim(t *testing.T) {
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
		testkit.Equal(testkit.In(t, tt.name), want, claim(tt.packet))
	}
}

func TestAnnouncement(t *testing.T) {
	arp := func(from, to string) []byte {
		b := append([]byte{0, 1, 8, 0, 6, 4, 0, 1, 1, 2, 3, 4, 5, 6}, netip.MustParseAddr(from).AsSlice()...)
		return append(append(b, make([]byte, 6)...), netip.MustParseAddr(to).AsSlice()...)
	}
	advertises := func(flags byte) []byte {
		b := make([]byte, 64)
		b[0], b[6], b[7], b[40], b[44] = 0x60, 58, 255, 136, flags
		return b
	}
	for what, tt := range map[string]struct {
		packet []byte
		want   bool
	}{
		"gratuitous ARP":                         {arp("192.0.2.5", "192.0.2.5"), true},
		"a question of a kernel":                 {arp("192.0.2.5", "192.0.2.1"), false},
		"an unsolicited neighbour advertisement": {advertises(0x20), true},
		"a solicited one":                        {advertises(0x60), false},
	} {
		testkit.Equal(testkit.In(t, what), tt.want, announcement(tt.packet))
	}
}

// Announcements from before a node held a VIP are forgotten, and the first one afterwards
// counts.
func TestAnnounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vip, notified := netip.MustParseAddr("192.0.2.5"), 0
		l := &claimListener{}
		c := Claims{changed: func() { notified++ }, listeners: map[netip.Addr]*claimListener{vip: l}}
		c.record(l, true)
		time.Sleep(time.Minute)
		since := time.Now()
		if got := c.Announced(vip, since); !got.IsZero() {
			t.Errorf("%v before it was held", got)
		}
		time.Sleep(time.Second)
		first := time.Now()
		for range 100 {
			c.record(l, true)
			time.Sleep(100 * time.Millisecond)
		}
		if got := c.Announced(vip, since); !got.Equal(first) {
			t.Errorf("%v, want %v", got, first)
		}
		if notified < 2 || notified > 12 {
			t.Errorf("notified %d times in 10 seconds, want once a second", notified)
		}
	})
}

// FuzzClaim reads any packet of the link.
func FuzzClaim(f *testing.F) {
	f.Add([]byte{0, 1, 8, 0, 6, 4, 0, 2, 1, 2, 3, 4, 5, 6, 192, 0, 2, 5, 0, 0, 0, 0, 0, 0, 192, 0, 2, 5})
	f.Add(make([]byte, 64))
	f.Fuzz(func(t *testing.T, data []byte) {
		a := claim(data)
		if a.IsValid() && len(data) >= arpLength {
			announcement(data)
		}
		if a.IsValid() && len(data) < arpLength {
			t.Errorf("%x: %v", data, a)
		}
	})
}
