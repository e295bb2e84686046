package neighbours

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

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
