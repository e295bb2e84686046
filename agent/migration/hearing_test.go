package migration

import (
	"net/netip"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/internal/vrrp/listener"
	"github.com/vipgen/vipgen/templates/keepalived"
)

func TestGenerationOf(t *testing.T) {
	advert := func(version, ttl int, multicast bool, interval time.Duration) (a listener.Received) {
		a.Version, a.TTL, a.Interval = version, ttl, interval
		if multicast {
			a.Destination = vrrp.MulticastGroup4
		}
		return a
	}
	multicast := fastSettings
	multicast.Mode = v1alpha1.ModeMulticast
	six := func(v v1alpha1.VRRPSettings) keepalived.Instance { i := *instanceOf(v); i.Version = 3; return i }
	tests := []struct {
		name     string
		old, new keepalived.Instance
		advert   listener.Received
		want     generation
	}{
		{"by the version", *instanceOf(classicSettings), *instanceOf(fastSettings), advert(2, 255, false, 0), oldSettings},
		{"by the version, migrated", *instanceOf(classicSettings), *instanceOf(fastSettings), advert(3, 255, false, 0), newSettings},
		{"by the mode", *instanceOf(fastSettings), *instanceOf(multicast), advert(3, 255, false, 0), oldSettings},
		{"by the mode, migrated", *instanceOf(fastSettings), *instanceOf(multicast), advert(3, 255, true, 0), newSettings},
		{"IPv6, by the interval", six(classicSettings), six(fastSettings), advert(3, 255, false, time.Second), oldSettings},
		{"IPv6, by the interval, migrated", six(classicSettings), six(fastSettings), advert(3, 255, false, 40*time.Millisecond), newSettings},
		{"IPv6, stretched", six(classicSettings), six(fastSettings), advert(3, 255, false, 200*time.Millisecond), newSettings},
		{"virtual, by the interval", *instanceOf(fastSettings), *instanceOf(virtualSettings), advert(3, 255, false, 40*time.Millisecond), oldSettings},
		{"virtual, by the interval, migrated", *instanceOf(fastSettings), *instanceOf(virtualSettings), advert(3, 255, false, 200*time.Millisecond), newSettings},
		{"neither", *instanceOf(classicSettings), *instanceOf(fastSettings), advert(3, 255, true, 0), neither},
		{"classic, from beyond the link", *instanceOf(classicSettings), *instanceOf(fastSettings), advert(2, 63, false, 0), oldSettings},
		{"fast, from beyond the link", *instanceOf(classicSettings), *instanceOf(fastSettings), advert(3, 254, false, 0), neither},
		{"multicast, from beyond the link", *instanceOf(fastSettings), *instanceOf(multicast), advert(3, 10, true, 0), neither},
	}
	for _, tt := range tests {
		p := Pair{"x", tt.old, tt.new}
		testkit.Equal(testkit.In(t, tt.name), tt.want, p.generationOf(tt.advert))
	}
}

// Adverts of strangers, of other instances and without a VIP are ignored.
func TestIgnoredAdverts(t *testing.T) {
	from := instanceOf(fastSettings).Peers
	conf := func(v v1alpha1.VRRPSettings) *keepalived.Conf {
		return &keepalived.Conf{Instances: []keepalived.Instance{*instanceOf(v)}}
	}
	var h Hearing
	h.Follow(pairsOf(conf(classicSettings), conf(fastSettings)), from)
	record := func(change func(*listener.Received)) bool {
		a := listener.Received{TTL: 255, Advert: vrrp.Advert{Source: from[0], Version: 3, RouterID: 10, Priority: 60, VIPs: testkit.Addrs("192.0.2.5")}}
		change(&a)
		return h.Record("eth0", a, noon)
	}
	for name, change := range map[string]func(*listener.Received){
		"another virtual router ID": func(a *listener.Received) { a.RouterID = 11 },
		"no VIP":                    func(a *listener.Received) { a.VIPs = nil },
		"another VIP":               func(a *listener.Received) { a.VIPs = testkit.Addrs("192.0.2.6") },
		"another source":            func(a *listener.Received) { a.Source = testkit.Addrs("192.0.2.99")[0] },
		"a release":                 func(a *listener.Received) { a.Priority = 0 },
	} {
		testkit.Equal(testkit.In(t, name), false, record(change))
	}
	testkit.Equal(testkit.In(t, "a peer's"), true, record(func(*listener.Received) {}))
}

// Advertisements of a node count as continued after several intervals, whatever the number of
// its VIPs.
func TestContinues(t *testing.T) {
	old, fresh := *instanceOf(classicSettings), *instanceOf(fastSettings)
	peer, other := netip.MustParseAddr("192.0.2.11"), netip.MustParseAddr("192.0.2.12")
	a := listener.Received{TTL: 255, Interface: 1, Advert: vrrp.Advert{
		Version: 3, RouterID: uint8(fresh.RouterID), Priority: 60, Interval: fresh.Interval(), VIPs: []netip.Addr{fresh.VIP.Addr()},
	}}
	step := fresh.Interval()
	tests := []struct {
		name string
		send func(note func(from netip.Addr, after time.Duration))
		want bool
	}{
		{"one", func(note func(netip.Addr, time.Duration)) { note(peer, 0) }, false},
		{"a burst", func(note func(netip.Addr, time.Duration)) {
			for range 100 {
				note(peer, 0)
			}
		}, false},
		{"two, far apart", func(note func(netip.Addr, time.Duration)) { note(peer, 0); note(peer, 5*step) }, false},
		{"three", func(note func(netip.Addr, time.Duration)) { note(peer, 0); note(peer, step); note(peer, 2*step) }, true},
		{"three of three nodes", func(note func(netip.Addr, time.Duration)) {
			note(peer, 0)
			note(other, step)
			note(peer, 2*step)
		}, false},
		{"with a break", func(note func(netip.Addr, time.Duration)) {
			note(peer, 0)
			note(peer, step)
			note(peer, 2*heardTime+step)
		}, false},
		{"long ago", func(note func(netip.Addr, time.Duration)) {
			for n := range time.Duration(3) {
				note(peer, n*step-time.Minute)
			}
		}, false},
		{"of a host that is no peer", func(note func(netip.Addr, time.Duration)) {
			for n := range time.Duration(9) {
				note(netip.MustParseAddr("192.0.2.99"), n*step)
			}
		}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			told := 0
			var h Hearing
			h.Follow([]Pair{{fresh.Name, old, fresh}}, []netip.Addr{peer, other})
			now := time.Now()
			last := now
			tt.send(func(from netip.Addr, after time.Duration) {
				a := a
				a.Source = from
				if h.Record(fresh.Interface, a, now.Add(after)) {
					told++
				}
				if now.Add(after).After(last) {
					last = now.Add(after)
				}
			})
			testkit.Equal(t, tt.want, h.Heard(last).continues)
			if tt.want && told != 2 {
				t.Errorf("notified %d times, want once for the first and once when they continue", told)
			}
			h.Follow([]Pair{{fresh.Name, fresh, old}}, []netip.Addr{peer, other})
			if got := h.Heard(last); got.continues || len(got.last) > 0 {
				t.Errorf("other settings were followed, and it returns %+v", got)
			}
		})
	}
}
