package record

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

// TestHoldings: the counters of a VIP belong to this node alone, and continue when it returns.
func TestHoldings(t *testing.T) {
	vip, other, own := netip.MustParseAddr("192.0.2.5"), netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("192.0.2.10")
	begin := time.Now()
	at := func(s int) time.Time { return begin.Add(time.Duration(s) * time.Second) }
	vips := []netip.Addr{vip, other}
	var h Holdings
	if h.Addresses() != nil {
		t.Error("addresses before they are known")
	}
	for _, step := range []struct {
		at        int
		addresses []netip.Addr
		acquired  bool
	}{
		{0, []netip.Addr{own}, false},
		{10, []netip.Addr{own, vip}, true},
		{15, []netip.Addr{own, vip}, false},
		{40, []netip.Addr{own}, false},
		{50, []netip.Addr{own, vip}, true},
	} {
		if _, acquired := h.Observe(at(step.at), vips, step.addresses); slices.Contains(acquired, vip) != step.acquired || slices.Contains(acquired, own) {
			t.Errorf("after %d s: acquired %v", step.at, acquired)
		}
	}
	if taken, lost, held := h.Count(vip, at(55)); taken != 2 || lost != 1 || held != 35*time.Second {
		t.Errorf("taken %d, lost %d, held for %v", taken, lost, held)
	}
	if taken, lost, held := h.Count(other, at(55)); taken != 0 || lost != 0 || held != 0 {
		t.Errorf("taken %d, lost %d, held for %v", taken, lost, held)
	}
	if since, held := h.Since(vip); !held || !since.Equal(at(50)) {
		t.Errorf("held %t since %v", held, since)
	}
	if since, held := h.Since(own); !held || !since.Equal(at(0)) {
		t.Errorf("held %t since %v", held, since)
	}
	h.Observe(at(60), vips[1:], []netip.Addr{own, vip})
	if taken, _, _ := h.Count(vip, at(60)); taken != 0 {
		t.Error("an address that is no VIP any more is counted")
	}
}
