package migration

import (
	"net/netip"
	"slices"
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
	for _, tt := range []struct {
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
		{"IPv6, between the two", six(classicSettings), six(fastSettings), advert(3, 255, false, 520*time.Millisecond), neither},
		{"virtual, by the interval", *instanceOf(fastSettings), *instanceOf(virtualSettings), advert(3, 255, false, 40*time.Millisecond), oldSettings},
		{"virtual, by the interval, migrated", *instanceOf(fastSettings), *instanceOf(virtualSettings), advert(3, 255, false, 200*time.Millisecond), newSettings},
		{"neither", *instanceOf(classicSettings), *instanceOf(fastSettings), advert(3, 255, true, 0), neither},
		{"classic, from beyond the link", *instanceOf(classicSettings), *instanceOf(fastSettings), advert(2, 63, false, 0), oldSettings},
		{"fast, from beyond the link", *instanceOf(classicSettings), *instanceOf(fastSettings), advert(3, 254, false, 0), neither},
		{"multicast, from beyond the link", *instanceOf(fastSettings), *instanceOf(multicast), advert(3, 10, true, 0), neither},
	} {
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
	var h Recorder
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
	peer, other, stranger := netip.MustParseAddr("192.0.2.11"), netip.MustParseAddr("192.0.2.12"), netip.MustParseAddr("192.0.2.99")
	a := listener.Received{TTL: 255, Interface: 1, Advert: vrrp.Advert{
		Version: 3, RouterID: uint8(fresh.RouterID), Priority: 60, Interval: fresh.Interval(), VIPs: []netip.Addr{fresh.VIP.Addr()},
	}}
	type advert struct {
		from  netip.Addr
		after time.Duration // in intervals
	}
	for name, tt := range map[string]struct {
		adverts []advert
		want    bool
	}{
		"one":                   {[]advert{{peer, 0}}, false},
		"a burst":               {slices.Repeat([]advert{{peer, 0}}, 100), false},
		"two, far apart":        {[]advert{{peer, 0}, {peer, 5}}, false},
		"three":                 {[]advert{{peer, 0}, {peer, 1}, {peer, 2}}, true},
		"three of three nodes":  {[]advert{{peer, 0}, {other, 1}, {peer, 2}}, false},
		"with a break":          {[]advert{{peer, 0}, {peer, 1}, {peer, 2*maxAdvertAge/fresh.Interval() + 1}}, false},
		"long ago":              {[]advert{{peer, -1500}, {peer, -1499}, {peer, -1498}}, false},
		"of a host, not a peer": {[]advert{{stranger, 0}, {stranger, 1}, {stranger, 2}, {stranger, 3}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			notified := 0
			var h Recorder
			h.Follow([]Pair{{fresh.Name, old, fresh}}, []netip.Addr{peer, other})
			now := time.Now()
			last := now
			for _, x := range tt.adverts {
				a.Source = x.from
				at := now.Add(x.after * fresh.Interval())
				if h.Record(fresh.Interface, a, at) {
					notified++
				}
				if at.After(last) {
					last = at
				}
			}
			testkit.Equal(t, tt.want, h.Adverts(last).continues)
			if tt.want && notified != 2 {
				t.Errorf("notified %d times, want once for the first and once when they continue", notified)
			}
			h.Follow([]Pair{{fresh.Name, fresh, old}}, []netip.Addr{peer, other})
			if got := h.Adverts(last); got.continues || len(got.last) > 0 {
				t.Errorf("other settings were followed, and it returns %+v", got)
			}
		})
	}
}

func TestFollow(t *testing.T) {
	one := evidence{advert: true}
	many := evidence{advert: true, continues: true}
	announced := evidence{advert: true, announced: true}
	both := evidence{advert: true, continues: true, announced: true}
	for _, tt := range []struct {
		name     string
		at       time.Duration // of the instant, after now
		none     bool          // there is no instant
		agreed   bool
		evidence evidence
		want     bool
	}{
		{name: "a forged advert, and nobody has agreed on anything", none: true, evidence: one},
		{name: "many of them", none: true, evidence: many},
		{name: "a forged advert before the agreed instant", at: 5 * time.Second, agreed: true, evidence: one},
		{name: "a moment before", at: time.Millisecond, agreed: true, evidence: one},
		{name: "when the agreed instant has come", at: 0, agreed: true, evidence: one, want: true},
		{name: "after it", at: -time.Second, agreed: true, evidence: one, want: true},
		{name: "long after it", at: -time.Minute, agreed: true, evidence: many},
		{name: "silence at the instant", at: 0, agreed: true},
		{name: "another clock is ahead", at: 5 * time.Second, agreed: true, evidence: many, want: true},
		{name: "adverts go on long before the instant", at: 15 * time.Second, agreed: true, evidence: many},
		{name: "another clock is far ahead, and its node says that it migrated", at: 15 * time.Second, agreed: true, evidence: both, want: true},
		{name: "a forged advert while an instant passes that nobody agreed on", at: -time.Second, evidence: one},
		{name: "this node has withdrawn too late", at: -time.Second, evidence: many, want: true},
		{name: "not all had agreed yet", at: 5 * time.Second, evidence: many},
		{name: "a node says that it migrated, and one advert came", none: true, evidence: announced},
		{name: "a node says that it migrated, and sends adverts", none: true, evidence: both, want: true},
		{name: "a node says that it migrated, and is silent", none: true, evidence: evidence{announced: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var m instants
			now := time.Now()
			if !tt.none {
				// As announced before it passed.
				m.add(now.Add(tt.at-time.Minute), now.Add(tt.at), tt.agreed)
			}
			testkit.Equal(t, tt.want, m.follow(now, tt.evidence))
		})
	}
}

// A withdrawn instant counts in addition to the next one, each for a limited time.
func TestInstants(t *testing.T) {
	now := time.Now()
	var m instants
	m.add(now, now.Add(20*time.Second), false)
	m.add(now, now.Add(20*time.Second+time.Millisecond), true) // the same instant by the wall clock
	m.add(now.Add(13*time.Second), now.Add(50*time.Second), false)
	if len(m) != 2 || !m[0].agreed || m[1].agreed {
		t.Fatalf("%+v", m)
	}
	testkit.Equal(t, 7*time.Second, m.next(now.Add(13*time.Second), time.Minute))
	testkit.Equal(t, time.Second, m.next(now.Add(13*time.Second), time.Second))
	m.add(now.Add(20*time.Second+afterTime+time.Millisecond), now.Add(50*time.Second), false)
	if len(m) != 1 || !m[0].at.Equal(now.Add(50*time.Second)) {
		t.Errorf("%+v", m)
	}
	m.add(now.Add(time.Hour), now.Add(time.Minute), false)
	testkit.Equal(t, 0, len(m))
	for range 2 {
		m.add(now, now.Add(-afterTime), false)
	}
	testkit.Equal(t, 1, len(m))
}
