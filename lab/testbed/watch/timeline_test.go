package watch

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/vrrp"
)

var (
	vip1 = netip.MustParseAddr("192.0.2.5")
	vip2 = netip.MustParseAddr("192.0.2.6")
)

func TestOverlaps(t *testing.T) {
	span := func(vip netip.Addr, node string, from, to time.Duration) Span {
		return Span{View: Capture, VIP: vip, Node: node, From: from, To: to}
	}
	overlap := func(a, b string, from, to time.Duration) Overlap {
		return Overlap{View: Capture, VIP: vip1, Nodes: [2]string{a, b}, From: from, To: to}
	}
	tests := []struct {
		name     string
		timeline Timeline
		shortest time.Duration
		want     []Overlap
	}{
		{"nothing", nil, 0, nil},
		{"one after the other", Timeline{span(vip1, "a", 0, 10), span(vip1, "b", 10, 20)}, 0, nil},
		{"other VIPs", Timeline{span(vip1, "a", 0, 10), span(vip2, "b", 0, 10)}, 0, nil},
		{"other views", Timeline{span(vip1, "a", 0, 10), {View: Addresses, VIP: vip1, Node: "b", From: 0, To: 10}}, 0, nil},
		{"same node", Timeline{span(vip1, "a", 0, 10), span(vip1, "a", 5, 15)}, 0, nil},
		{"at the end", Timeline{span(vip1, "b", 8, 20), span(vip1, "a", 0, 10)}, 0, []Overlap{overlap("a", "b", 8, 10)}},
		{"too short", Timeline{span(vip1, "b", 8, 20), span(vip1, "a", 0, 10)}, 3, nil},
		{"within", Timeline{span(vip1, "a", 0, 100), span(vip1, "b", 20, 30), span(vip1, "b", 50, 70)}, 0,
			[]Overlap{overlap("a", "b", 20, 30), overlap("a", "b", 50, 70)}},
		{"a moment", Timeline{span(vip1, "a", 0, 100), span(vip1, "b", 20, 20)}, 0, nil},
		{"three", Timeline{span(vip1, "a", 0, 10), span(vip1, "b", 5, 15), span(vip1, "c", 8, 20)}, 0,
			[]Overlap{overlap("a", "b", 5, 10), overlap("a", "c", 8, 10), overlap("b", "c", 8, 15)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := slices.Clone(tt.timeline)
			same := cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
			testkit.Equal(t, tt.want, tt.timeline.Overlaps(tt.shortest), same)
			if !slices.Equal(before, tt.timeline) {
				t.Error("the timeline was changed")
			}
		})
	}
	testkit.Equal(t, 7, tests[len(tests)-1].timeline.SplitBrain(0))
}

// A brief holder, as one of two that take the VIP at once, is left out.
func TestHolders(t *testing.T) {
	on := func(node string, from, to time.Duration) Span { return Span{Addresses, vip1, node, from, to} }
	timeline := Timeline{on("a", 0, 10), on("a", 10, 15), on("b", 15, 17), on("c", 15, 30), {Capture, vip1, "b", 0, 30}, {Addresses, vip2, "b", 0, 30}, on("a", 30, 40)}
	if got, want := timeline.Holders(vip1, 2), []string{"a", "c", "a"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// newTestWatch is a Watch without a network.
func newTestWatch() *Watch {
	return &Watch{vips: map[netip.Addr]bool{vip1: true}, capture: newHoldings(Capture), speakers: map[speaker]*Speaker{}}
}

func TestClaims(t *testing.T) {
	ms := time.Millisecond
	advert := func(priority uint8) packet {
		return packet{advert: &vrrp.Advert{Priority: priority, Interval: 100 * ms, VIPs: []netip.Addr{vip1, vip2}}}
	}
	arp := packet{claimed: vip1}
	type event struct {
		at time.Duration
		packet
	}
	for _, tt := range []struct {
		name   string
		events []event
		want   [][2]time.Duration
	}{
		{"adverts", []event{{0, advert(60)}, {100 * ms, advert(60)}, {200 * ms, advert(60)}}, [][2]time.Duration{{0, 200 * ms}}},
		{"some were missed", []event{{0, advert(60)}, {370 * ms, advert(60)}}, [][2]time.Duration{{0, 370 * ms}}},
		{"too many were missed", []event{{0, advert(60)}, {400 * ms, advert(60)}, {500 * ms, advert(60)}},
			[][2]time.Duration{{0, 0}, {400 * ms, 500 * ms}}},
		{"given up", []event{{0, advert(60)}, {50 * ms, advert(0)}, {90 * ms, advert(60)}}, [][2]time.Duration{{0, 50 * ms}, {90 * ms, 90 * ms}}},
		{"never held", []event{{0, advert(0)}}, nil},
		{"ARP alone", []event{{0, arp}, {900 * ms, arp}, {2000 * ms, arp}}, [][2]time.Duration{{0, 900 * ms}, {2000 * ms, 2000 * ms}}},
		{"ARP after the last advert", []event{{0, advert(60)}, {100 * ms, arp}}, [][2]time.Duration{{0, 100 * ms}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newTestWatch()
			w.addresses = newHoldings(Addresses)
			for _, e := range tt.events {
				w.record("a", e.packet, e.at)
			}
			var got [][2]time.Duration
			for _, s := range w.Timeline() {
				if s.Node != "a" || s.VIP != vip1 || s.View != Capture {
					t.Errorf("%+v", s)
				}
				got = append(got, [2]time.Duration{s.From, s.To})
			}
			testkit.Equal(t, tt.want, got)
		})
	}
}
