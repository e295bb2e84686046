package neighbours

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vipgen/vipgen/internal/testbed/attack"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/templates/keepalived"
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
				testkit.Equal(testkit.In(t, time.Duration(n)*announceEvery), announceTimes-1-n, left())
				time.Sleep(announceEvery)
			}
		}
	})
}

// Announcements from before a node held a VIP are forgotten, and the first one afterwards
// counts.
func TestAnnounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vip, notified := netip.MustParseAddr("192.0.2.5"), 0
		l := &claimListener{}
		c := Claims{changed: func() { notified++ }, listeners: map[netip.Addr]*claimListener{vip: l}}
		c.record(l, true, true)
		time.Sleep(time.Minute)
		since := time.Now()
		if got := c.Announced(vip, since); !got.IsZero() {
			t.Errorf("%v before it was held", got)
		}
		time.Sleep(time.Second)
		first := time.Now()
		for range 100 {
			c.record(l, true, true)
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

// Hard case 51: the holder of a VIP answers at once a stranger that announces the VIP, and the
// stranger receives the answer; it answers neither peers nor claims of other addresses. It
// defends its own address against any host, and announces it first. It answers also when its
// last peer was deleted, and not with multicast.
func TestHardCase51HolderAnswers(t *testing.T) {
	testkit.Live(t)
	network := daemon.NewNetwork(t)
	vips := []netip.Addr{netip.MustParseAddr("192.0.2.10"), netip.MustParseAddr("2001:db8::10")}
	other := netip.MustParseAddr("192.0.2.77")
	holder := daemon.AddNode(t, network, "holder", "192.0.2.1/24", "2001:db8::1/64", "192.0.2.10/32", "2001:db8::10/128")
	stranger := daemon.AddNode(t, network, "stranger", "192.0.2.2/24", "2001:db8::2/64", "192.0.2.10/32", "2001:db8::10/128", "192.0.2.77/32")
	in := func(do func(func() error) error, f func() error) {
		t.Helper()
		testkit.Must(t, do(f))
	}
	source := map[netip.Addr]netip.Addr{vips[0]: netip.MustParseAddr("192.0.2.1"), vips[1]: netip.MustParseAddr("2001:db8::1")}
	var instances []keepalived.Instance
	for _, vip := range vips {
		i := keepalived.Instance{Interface: holder.Link, VIP: netip.PrefixFrom(vip, vip.BitLen()), Source: source[vip], Peers: []netip.Addr{netip.MustParseAddr("192.0.2.9"), netip.MustParseAddr("2001:db8::9")}}
		instances = append(instances, i)
	}
	type claim struct {
		vip  netip.Addr
		from string
	}
	claimed := make(chan claim, 100)
	log := slog.New(slog.DiscardHandler)
	var received []netip.Addr
	d := newDefence(newAnnouncer(log), func(vip netip.Addr) { received = append(received, vip) }, log)
	d.claims.answer = func(vip netip.Addr, _ string, from net.HardwareAddr) { claimed <- claim{vip, from.String()} }
	for _, want := range []map[netip.Addr]int{{source[vips[0]]: announceTimes, source[vips[1]]: announceTimes}, {}} {
		in(holder.Do, func() error { d.follow(instances); return nil })
		testkit.Equal(t, want, d.announcer.left)
		clear(d.announcer.left)
	}
	t.Cleanup(func() { d.follow(nil) })

	claims := NewClaims(func() {}, log)
	listening := []keepalived.Instance{instances[0], instances[1]}
	for i := range listening {
		listening[i].Interface = stranger.Link
	}
	in(stranger.Do, func() error { claims.Follow(listening); return nil })
	t.Cleanup(func() { claims.Follow(nil) })

	var link *net.Interface
	in(stranger.Do, func() (err error) { link, err = net.InterfaceByName(stranger.Link); return err })
	for _, vip := range vips {
		before := time.Now()
		in(stranger.Do, func() error { return announceAt(link.Index, other) })
		in(stranger.Do, func() error { return announceAt(link.Index, vip) })
		got := <-claimed
		if want := (claim{vip, link.HardwareAddr.String()}); got != want {
			t.Fatalf("%v, want %v", got, want)
		}
		in(holder.Do, func() error { d.answer(vip, holder.Link, link.HardwareAddr); d.announcer.send(); return nil })
		testkit.Await(t, "the stranger to receive the answer", func() bool { return !claims.Announced(vip, before).IsZero() })
		if claims.ClaimedAfter(vip, before.Add(time.Hour)) || !claims.ClaimedAfter(vip, before) {
			t.Errorf("%v: announced again at another time than it was", vip)
		}
		// A second claim at once exceeds the rate; then a peer's claim.
		left := func() int {
			in(holder.Do, func() error { d.answer(vip, holder.Link, link.HardwareAddr); return nil })
			d.announcer.mu.Lock()
			defer d.announcer.mu.Unlock()
			return d.announcer.left[vip]
		}
		d.answered[vip] = time.Now().Add(time.Hour)
		testkit.Equal(testkit.In(t, vip), 0, left())
		d.answered[vip] = time.Time{}
		peer := instances[0].Peers[0]
		if vip.Is6() {
			peer = instances[0].Peers[1]
		}
		neighbour := func(words string) {
			t.Helper()
			testkit.Run(t, holder.Command(t.Context(), "ip", strings.Fields("neighbour "+words+" dev "+holder.Link)...))
		}
		neighbour("replace " + peer.String() + " lladdr " + link.HardwareAddr.String() + " nud reachable")
		testkit.Equal(testkit.In(t, vip), 0, left())
		stop, err := attack.Claim(stranger, time.Hour, source[vip])
		testkit.Must(t, err)
		if got, want := <-claimed, (claim{source[vip], link.HardwareAddr.String()}); got != want {
			t.Fatalf("%v, want %v", got, want)
		}
		stop()
		in(holder.Do, func() error { d.answer(source[vip], holder.Link, link.HardwareAddr); return nil })
		testkit.Equal(testkit.In(t, vip), 1, d.announcer.left[source[vip]])
		neighbour("del " + peer.String())
		testkit.Equal(testkit.In(t, vip), 1, left())
		in(holder.Do, func() error { d.announcer.send(); return nil })
	}
	testkit.Equal(t, vips, slices.Compact(received)) // also of peers; not of the node's own address
	for _, group := range []string{"224.0.0.254", ""} {
		for i := range instances {
			instances[i].Peers, instances[i].Source, instances[i].QuietGroup = nil, netip.Addr{}, group
		}
		in(holder.Do, func() error { d.follow(instances); return nil })
		for _, vip := range vips {
			in(holder.Do, func() error { d.answer(vip, holder.Link, link.HardwareAddr); return nil })
			testkit.Equal(testkit.In(t, group, vip), group != "", d.announcer.left[vip] > 0)
			delete(d.announcer.left, vip)
		}
	}
}
