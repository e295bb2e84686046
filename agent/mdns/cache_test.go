package mdns

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
)

var epoch = time.Unix(1_700_000_000, 0)

func after(seconds float64) time.Time {
	return epoch.Add(time.Duration(seconds * float64(time.Second)))
}

func equalHosts(t *testing.T, got, want []Host) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
}

func TestCacheFollowsAHost(t *testing.T) {
	c := newCache()
	old, now := newRecords("master-0", addrs("192.0.2.1", "2001:db8::1")), newRecords("master-0", addrs("192.0.2.7", "2001:db8::1"))
	if !c.learn(response(old, nil), epoch) {
		t.Error("no news")
	}
	equalHosts(t, c.hosts(epoch), []Host{{"master-0", addrs("192.0.2.1", "2001:db8::1")}})
	if c.learn(response(old, nil), after(1)) {
		t.Error("the same is news")
	}
	// The other IPv4 address replaces the first one, after a second.
	c.learn(response(now, nil), after(10))
	equalHosts(t, c.hosts(after(11)), []Host{{"master-0", addrs("192.0.2.7", "2001:db8::1")}})
	c.learn(goodbye(now.own()), after(20))
	equalHosts(t, c.hosts(after(20.5)), []Host{{"master-0", addrs("192.0.2.7", "2001:db8::1")}})
	equalHosts(t, c.hosts(after(21)), nil)
	c.expire(after(21))
	if c.size != 0 || len(c.entries) != 0 {
		t.Errorf("%d records are left: %v", c.size, c.entries)
	}
}

func TestCacheExpiresAndAsksAgain(t *testing.T) {
	c := newCache()
	c.learn(response(newRecords("master-0", addrs("192.0.2.1")), nil), epoch)
	var asked []dns.Question
	for second := 0.0; second < hostTTL; second += 0.5 {
		for _, q := range c.due(after(second)) {
			if second < 0.8*hostTTL {
				t.Errorf("asked for %v after %v seconds", q, second)
			}
			asked = append(asked, q)
		}
	}
	if want := 2 * refreshes; len(asked) != want { // the address and the service's place
		t.Errorf("asked %d times, want %d: %v", len(asked), want, asked)
	}
	equalHosts(t, c.hosts(after(hostTTL-1)), []Host{{"master-0", addrs("192.0.2.1")}})
	equalHosts(t, c.hosts(after(hostTTL)), nil)
	if got := c.next(after(1e6)); got.After(after(hostTTL)) {
		t.Errorf("the next thing happens %v after the end", got.Sub(after(hostTTL)))
	}
}

func TestCacheAsksForWhatIsMissing(t *testing.T) {
	tests := []struct {
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
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newCache()
			c.learn(&dns.Msg{Answer: parse(t, tt.in...)}, epoch)
			var got []string
			for _, q := range c.missing(epoch) {
				got = append(got, q.Name+" "+dns.TypeToString[q.Qtype])
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("asks %q, want %q", got, tt.want)
			}
		})
	}
}

func TestCacheLeavesOthersOut(t *testing.T) {
	tests := []struct {
		name string
		in   []string
		want []Host
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
			"x.local. 120 IN A 192.0.2.9"}, []Host{{"x", addrs("192.0.2.9")}}},
		{"as avahi names it", []string{`_workstation._tcp.local. 4500 IN PTR x\ [52:54:00:00:00:01]._workstation._tcp.local.`,
			`x\ [52:54:00:00:00:01]._workstation._tcp.local. 120 IN SRV 0 0 9 x.local.`, "x.local. 120 IN A 192.0.2.9"}, []Host{{"x", addrs("192.0.2.9")}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newCache()
			// Over the wire, as names come in.
			data, err := (&dns.Msg{Extra: parse(t, tt.in...)}).Pack()
			if err != nil {
				t.Fatal(err)
			}
			msg := new(dns.Msg)
			if err := msg.Unpack(data); err != nil {
				t.Fatal(err)
			}
			c.learn(msg, epoch)
			equalHosts(t, c.hosts(epoch), tt.want)
		})
	}
}

func TestCacheIsBounded(t *testing.T) {
	c := newCache()
	msg := new(dns.Msg)
	for i := range maxCached + 100 {
		msg.Answer = append(msg.Answer, newRecords(fmt.Sprintf("h%d", i), nil)...)
	}
	c.learn(msg, epoch)
	if c.size != maxCached {
		t.Errorf("%d records", c.size)
	}
}
