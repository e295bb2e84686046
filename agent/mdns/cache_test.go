package mdns

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/testkit"
)

var epoch = time.Unix(1_700_000_000, 0)

var neighbour = netip.MustParseAddr("192.0.2.200")

func after(seconds float64) time.Time {
	return epoch.Add(time.Duration(seconds * float64(time.Second)))
}

func equalHosts(t *testing.T, got, want []state.Host) {
	t.Helper()
	testkit.Equal(t, want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b }))
}

func TestCacheFollowsAHost(t *testing.T) {
	c := newCache()
	old, now := newRecords("master-0", testkit.Addrs("192.0.2.1", "2001:db8::1")), newRecords("master-0", testkit.Addrs("192.0.2.7", "2001:db8::1"))
	if !c.learn(response(old, nil), neighbour, epoch) {
		t.Error("no news")
	}
	equalHosts(t, c.hosts(epoch), []state.Host{{Name: "master-0", Addresses: testkit.Addrs("192.0.2.1", "2001:db8::1")}})
	if c.learn(response(old, nil), neighbour, after(1)) {
		t.Error("the same is news")
	}
	// The other IPv4 address replaces the first one, after a second.
	c.learn(response(now, nil), neighbour, after(10))
	equalHosts(t, c.hosts(after(11)), []state.Host{{Name: "master-0", Addresses: testkit.Addrs("192.0.2.7", "2001:db8::1")}})
	c.learn(goodbye(now.own()), neighbour, after(20))
	equalHosts(t, c.hosts(after(20.5)), []state.Host{{Name: "master-0", Addresses: testkit.Addrs("192.0.2.7", "2001:db8::1")}})
	equalHosts(t, c.hosts(after(21)), nil)
	c.expire(after(21))
	testkit.Equal(testkit.In(t, c), 0, len(c.all)+len(c.byID)+len(c.sets)+len(c.senders)+len(c.targets))
}

func TestCacheExpiresAndQueriesAgain(t *testing.T) {
	c := newCache()
	c.learn(response(newRecords("master-0", testkit.Addrs("192.0.2.1")), nil), neighbour, epoch)
	var asked []dns.Question
	for second := 0.0; second < hostTTL; second += 0.5 {
		for _, q := range c.due(after(second), 100) {
			if second < 0.8*hostTTL {
				t.Errorf("asked for %v after %v seconds", q, second)
			}
			asked = append(asked, q)
		}
	}
	if want := 2 * refreshes; len(asked) != want { // the address and the service's place
		t.Errorf("asked %d times, want %d: %v", len(asked), want, asked)
	}
	equalHosts(t, c.hosts(after(hostTTL-1)), []state.Host{{Name: "master-0", Addresses: testkit.Addrs("192.0.2.1")}})
	equalHosts(t, c.hosts(after(hostTTL)), nil)
	if got := c.next(after(1e6)); got.After(after(hostTTL)) {
		t.Errorf("the next thing happens %v after the end", got.Sub(after(hostTTL)))
	}
}

func TestCacheQueriesMissingRecords(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   []string
		want []string
	}{
		{"nothing known", nil, nil},
		{"instance alone", []string{"_workstation._tcp.local. 4500 IN PTR a._workstation._tcp.local."}, []string{"a._workstation._tcp.local. SRV"}},
		{"without addresses", []string{"_workstation._tcp.local. 4500 IN PTR a._workstation._tcp.local.",
			"a._workstation._tcp.local. 120 IN SRV 0 0 9 a.local."}, []string{"a.local. A", "a.local. AAAA"}},
		{"one family", []string{"_workstation._tcp.local. 4500 IN PTR a._workstation._tcp.local.",
			"a._workstation._tcp.local. 120 IN SRV 0 0 9 a.local.", "a.local. 120 IN A 192.0.2.1"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCache()
			c.learn(&dns.Msg{Answer: parse(t, tt.in...)}, neighbour, epoch)
			var got []string
			for _, q := range c.missing(epoch) {
				got = append(got, q.Name+" "+dns.TypeToString[q.Qtype])
			}
			testkit.Equal(t, tt.want, got)
		})
	}
}

func TestCacheLeavesOthersOut(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   []string
		want []state.Host
	}{
		{"address of nobody", []string{"x.local. 120 IN A 192.0.2.9"}, nil},
		{"other service", []string{"_http._tcp.local. 4500 IN PTR x._http._tcp.local.", "x._http._tcp.local. 120 IN SRV 0 0 80 x.local.",
			"x.local. 120 IN A 192.0.2.9"}, nil},
		{"host of several labels", []string{"_workstation._tcp.local. 4500 IN PTR x._workstation._tcp.local.",
			"x._workstation._tcp.local. 120 IN SRV 0 0 9 api.example.local.", "api.example.local. 120 IN A 192.0.2.9"}, nil},
		{"host outside local", []string{"_workstation._tcp.local. 4500 IN PTR x._workstation._tcp.local.",
			"x._workstation._tcp.local. 120 IN SRV 0 0 9 example.com.", "example.com. 120 IN A 192.0.2.9"}, nil},
		{"addresses of no use", []string{"_workstation._tcp.local. 4500 IN PTR x._workstation._tcp.local.",
			"x._workstation._tcp.local. 120 IN SRV 0 0 9 x.local.", "x.local. 120 IN A 127.0.0.1", "x.local. 120 IN AAAA fe80::1",
			"x.local. 120 IN A 192.0.2.9"}, []state.Host{{Name: "x", Addresses: testkit.Addrs("192.0.2.9")}}},
		{"as avahi names it", []string{`_workstation._tcp.local. 4500 IN PTR x\ [52:54:00:00:00:01]._workstation._tcp.local.`,
			`x\ [52:54:00:00:00:01]._workstation._tcp.local. 120 IN SRV 0 0 9 x.local.`, "x.local. 120 IN A 192.0.2.9"}, []state.Host{{Name: "x", Addresses: testkit.Addrs("192.0.2.9")}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCache()
			// Over the wire, as records arrive.
			data, err := (&dns.Msg{Extra: parse(t, tt.in...)}).Pack()
			testkit.Must(t, err)
			msg := new(dns.Msg)
			testkit.Must(t, msg.Unpack(data))
			c.learn(msg, neighbour, epoch)
			equalHosts(t, c.hosts(epoch), tt.want)
		})
	}
}

// flood returns the largest packet in which a neighbour announces nonexistent hosts.
func flood(first, hosts int, ttl uint32) *dns.Msg {
	msg := &dns.Msg{MsgHdr: dns.MsgHdr{Response: true}}
	for i := range hosts {
		for _, rr := range newRecords(fmt.Sprintf("h%d", first+i), []netip.Addr{netip.AddrFrom4([4]byte{198, 18, byte(i >> 8), byte(i)})}).own() {
			rr.Header().Ttl = ttl
			msg.Answer = append(msg.Answer, rr)
		}
	}
	return msg
}

func sender(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
}

func TestHardCase41CacheIsBounded(t *testing.T) {
	for name, tt := range map[string]struct {
		from func(int) netip.Addr
		stay int // number of ten hosts that remain during the flood
	}{
		"from one neighbour":  {func(int) netip.Addr { return neighbour }, 10},
		"from many addresses": {sender, 5},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCache()
			rng := rand.New(rand.NewPCG(1, 1))
			c.random = rng.IntN
			for i := range 5000 {
				c.learn(flood(3*i, 3, 4500), tt.from(i), epoch)
			}
			if len(c.all) != maxCached || len(c.byID) != maxCached || len(c.senders) > maxCached || len(c.targets) > maxCached {
				t.Fatalf("%d records", len(c.all))
			}
			// Hosts that are announced now are known at once, and stay.
			for i := range 10 {
				c.learn(response(newRecords(fmt.Sprintf("master-%d", i), []netip.Addr{sender(i)}), nil), netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), after(1))
			}
			known := func() (n int) {
				for _, h := range c.hosts(after(2)) {
					if strings.HasPrefix(h.Name, "master-") {
						n++
					}
				}
				return n
			}
			testkit.Equal(t, 10, known())
			for i := range 30 {
				c.learn(flood(3e5+3*i, 3, 4500), tt.from(1<<20+i), after(1.5))
			}
			if n := known(); n < tt.stay {
				t.Errorf("%d of 10 hosts are still known", n)
			}
		})
	}
}

// A record ends after 75 minutes at the latest, whatever its TTL.
func TestHardCase41RecordsEnd(t *testing.T) {
	for _, ttl := range []uint32{otherTTL + 1, 1 << 27, 1<<32 - 1} {
		c := newCache()
		c.learn(flood(0, 3, ttl), neighbour, epoch)
		if at := c.next(after(1e9)); at.Before(after(0.79*otherTTL)) || at.After(after(otherTTL)) {
			t.Errorf("TTL %d: the next thing happens after %v", ttl, at.Sub(epoch))
		}
		testkit.Empty(testkit.In(t, ttl), c.due(after(1), 100))
		c.expire(after(otherTTL))
		testkit.Empty(testkit.In(t, ttl), c.all)
	}
}

// No packet removes the records of others for the service, or keeps out a host's addresses.
func TestHardCase41OthersRecords(t *testing.T) {
	c := newCache()
	c.learn(response(newRecords("master-0", testkit.Addrs("192.0.2.1")), nil), neighbour, epoch)
	foreign := flood(0, 1, 4500)
	for _, rr := range foreign.Answer {
		rr.Header().Class |= flush
	}
	c.learn(foreign, neighbour, after(5))
	var many []dns.RR
	for i := range 100 {
		many = append(many, parse(t, fmt.Sprintf("master-0.local. 120 IN A 198.18.0.%d", i))...)
	}
	c.learn(&dns.Msg{Answer: many}, neighbour, after(6))
	c.learn(response(newRecords("master-0", testkit.Addrs("192.0.2.1")), nil), neighbour, after(8))
	c.expire(after(10))
	equalHosts(t, c.hosts(after(10)), []state.Host{{Name: "h0", Addresses: testkit.Addrs("198.18.0.0")}, {Name: "master-0", Addresses: testkit.Addrs("192.0.2.1")}})
}

// FuzzPacket feeds any message, twice and then its goodbye, to every reader.
func FuzzPacket(f *testing.F) {
	for _, msg := range []*dns.Msg{
		response(newRecords("master-1", testkit.Addrs("192.0.2.11", "2001:db8::11")), nil), goodbye(newRecords("master-0", nil)), flood(0, 20, 1<<32-1),
		newRecords("master-0", testkit.Addrs("192.0.2.66")).probe(), {Question: []dns.Question{question(service, dns.TypePTR), question("master-0.local.", dns.TypeANY)}},
	} {
		data, err := msg.Pack()
		testkit.Must(f, err)
		f.Add(data)
	}
	own := newRecords("master-0", testkit.Addrs("192.0.2.10", "2001:db8::10"))
	f.Fuzz(func(t *testing.T, data []byte) {
		msg := new(dns.Msg)
		if len(data) > maxMessage || msg.Unpack(data) != nil {
			return // the reader drops it
		}
		c := newCache()
		c.learn(response(own, nil), neighbour, epoch)
		for i := range 2 {
			now := epoch.Add(time.Duration(i) * time.Minute)
			c.learn(msg, neighbour, now)
			for _, h := range c.hosts(now) {
				if validateHost(h.Name) != nil || len(h.Addresses) == 0 || len(h.Addresses) > 2*maxSet {
					t.Errorf("%+v", h)
				}
			}
			if next := c.next(now.Add(time.Hour * 24)); next.After(now.Add(maxTTL)) {
				t.Errorf("a record lasts until %v after now", next.Sub(now))
			}
			c.missing(now)
			c.due(now, maxQuestions)
			c.knownInstances(now, maxRecords)
		}
		c.expire(epoch.Add(time.Minute + maxTTL))
		testkit.Equal(testkit.In(t, c), 0, len(c.all)+len(c.byID)+len(c.sets)+len(c.senders)+len(c.targets))
		if r := own.answer(msg); len(r.answers) > 0 {
			_, err := pack(response(r.answers, r.extra))
			testkit.Check(t, err)
		}
		own.loses(msg, nil)
		if e := own.conflict(packet{msg: msg}, nil, true); e != nil && e.Error() == "" {
			t.Error("a conflict with nothing")
		}
	})
}
