package keepalived

import (
	"net/netip"
	"testing"
	"time"
)

// What is counted of a VIP is what this node did with it, and goes on when it returns.
func TestTally(t *testing.T) {
	vip, other, own := netip.MustParseAddr("192.0.2.5"), netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("192.0.2.10")
	begin := time.Now()
	at := func(s int) time.Time { return begin.Add(time.Duration(s) * time.Second) }
	vips := []netip.Addr{vip, other}
	tt := tally{}
	tt.look(at(0), vips, []netip.Addr{own})
	tt.look(at(10), vips, []netip.Addr{own, vip})
	tt.look(at(15), vips, []netip.Addr{own, vip}) // looked at again
	tt.look(at(40), vips, []netip.Addr{own})
	tt.look(at(50), vips, []netip.Addr{own, vip})
	if h := tt[vip]; h.taken != 2 || h.lost != 1 || h.total(at(55)) != 35*time.Second {
		t.Errorf("%+v, held for %v", h, h.total(at(55)))
	}
	if h := tt[other]; h.taken != 0 || h.lost != 0 || h.total(at(55)) != 0 {
		t.Errorf("%+v", h)
	}
	tt.look(at(60), vips[1:], []netip.Addr{own, vip})
	if len(tt) != 1 || tt[other] == nil {
		t.Errorf("an address that is no VIP any more is counted: %v", tt)
	}
}
