package neighbours

import (
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
)

// A neighbour that accepts another announcement after the first one receives a second one, for
// both families; an address that the node does not have is not announced.
func TestAnnouncementsAreRepeated(t *testing.T) {
	testkit.Live(t)
	network := daemon.NewNetwork(t)
	node := daemon.AddNode(t, network, "node", "192.0.2.1/24", "2001:db8::1/64", "192.0.2.10/32", "2001:db8::10/128")
	client := daemon.AddNode(t, network, "client", "192.0.2.2/24", "2001:db8::2/64")
	here := []netip.Addr{netip.MustParseAddr("192.0.2.10"), netip.MustParseAddr("2001:db8::10")}
	elsewhere := netip.MustParseAddr("192.0.2.11")
	const wrong = "02:00:00:00:00:99"
	neighbour := func(args ...string) string {
		t.Helper()
		out := testkit.Run(t, client.Command(t.Context(), "ip", append([]string{"neighbour"}, args...)...))
		return string(out)
	}
	mislead := func(vips ...netip.Addr) {
		for _, vip := range vips {
			neighbour("replace", vip.String(), "lladdr", wrong, "nud", "reachable", "dev", client.Link)
		}
	}
	knows := func(vip netip.Addr) bool {
		got := neighbour("show", vip.String(), "dev", client.Link)
		return strings.Contains(got, "lladdr") && !strings.Contains(got, wrong)
	}

	g := newAnnouncer(slog.New(slog.DiscardHandler))
	once := func() (more bool) {
		t.Helper()
		testkit.Must(t, node.Do(func() error { more = g.send(); return nil }))
		return more
	}
	mislead(elsewhere)
	for range 2 {
		g.announce(append(here, elsewhere))
		for n := range announceTimes {
			mislead(here...)
			if more := once(); more != (n < announceTimes-1) {
				t.Fatalf("after %d announcements: more pending: %t", n+1, more)
			}
			for _, vip := range here {
				testkit.Await(t, "the client to know where "+vip.String()+" is", func() bool { return knows(vip) })
			}
		}
	}
	if knows(elsewhere) {
		t.Errorf("%s was announced, which is not here", elsewhere)
	}
}

// A VIP is announced the right number of times at the right pace, and from the beginning when
// the node acquires it again.
func TestAnnouncementsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, vip := newAnnouncer(slog.New(slog.DiscardHandler)), netip.MustParseAddr("127.0.0.1") // on a link without neighbours
		left := func() int {
			g.mu.Lock()
			defer g.mu.Unlock()
			return g.left[vip]
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go g.run(ctx)
		synctest.Wait()
		for range 2 {
			g.announce([]netip.Addr{vip})
			for n := range announceTimes {
				synctest.Wait()
				if got, want := left(), announceTimes-1-n; got != want {
					t.Errorf("after %v: %d pending announcements, want %d", time.Duration(n)*announceEvery, got, want)
				}
				time.Sleep(announceEvery)
			}
		}
	})
}
