package fabric

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/arpnd"
	"github.com/vipgen/vipgen/internal/testkit"
)

func macs(last ...byte) (out []net.HardwareAddr) {
	for _, b := range last {
		out = append(out, net.HardwareAddr{2, 0, 0, 0, 0, b})
	}
	return out
}

func TestResults(t *testing.T) {
	const holder, previous = 1, 2
	resolves := func(answers ...byte) Check { return resolved(macs(answers...), macs(holder)[0], macs(previous)[0]) }
	got := func(n, ttl int) answer { return answer{Count: n, TTL: ttl} }
	for _, tt := range []struct {
		name   string
		check  Check
		result Result
		figure string
		cause  string // part of it
	}{
		{"unused", unused(nil, nil), Pass, "answers: 0", ""},
		{"in use", unused(macs(9), nil), Fail, "answers: 1", "02:00:00:00:00:09 answers for it: the address is in use"},
		{"proxy ARP", unused(macs(9), testkit.Addrs("192.0.2.251")), Fail, "answers: 1", "and for 192.0.2.251: proxy ARP"},

		{"moves", moved(arpnd.Request, 11499*time.Microsecond, 1), Pass, "11ms", ""},
		{"moves late", moved(arpnd.Request, 450*time.Millisecond, 1), Warning, "450ms", "requests are delayed, or the first ones lost"},
		{"not announced", moved(arpnd.Request, -1, 0), Fail, "not within 3s", "requests do not arrive"},
		{"not forwarded", moved(arpnd.Request, -1, 3), Fail, "not within 3s", "does not learn that the address moved"},
		{"no replies", moved(arpnd.Reply, -1, 0), Warning, "not within 3s", "replies do not arrive"},
		{"no NA", moved(arpnd.Advertisement, -1, 0), Fail, "not within 3s", "unsolicited neighbour advertisements do not arrive"},

		{"resolves", resolves(holder), Pass, "answers: 1", ""},
		{"does not resolve", resolves(), Fail, "answers: 0", "do not arrive"},
		{"suppression", resolves(previous), Fail, "answers: 1", "previous holder 02:00:00:00:00:02: ARP or ND suppression"},
		{"suppression and holder", resolves(holder, previous), Fail, "answers: 2", "ARP or ND suppression"},
		{"proxy", resolves(holder, 9), Fail, "answers: 2", "the holder is 02:00:00:00:00:01: proxy ARP"},
		{"proxy alone", resolves(9), Fail, "answers: 1", "proxy ARP"},

		{"duplicate is detected", duplicate(macs(holder), macs(holder)[0]), Pass, "answers: 1", ""},
		{"duplicate is not detected", duplicate(nil, macs(holder)[0]), Fail, "answers: 0", "second holder"},
		{"duplicate of another", duplicate(macs(9), macs(holder)[0]), Fail, "answers: 1", "second holder"},

		{"source", source(5), Pass, "5 of 5 packets", ""},
		{"some lost", source(4), Pass, "4 of 5 packets", ""},
		{"source guard", source(0), Fail, "0 of 5 packets", "dropped at its new port"},

		{"rate", rate(10), Pass, "10 of 10 announcements", ""},
		{"limited", rate(3), Warning, "3 of 10 announcements", "limited"},
		{"all lost", rate(0), Fail, "0 of 10 announcements", "do not arrive"},

		{"VRRP", advertised("unicast", got(3, 255), got(0, 0)), Pass, "3 of 3 advertisements", ""},
		{"VRRP in the other mode alone", advertised("unicast", got(0, 0), got(3, 255)), Warning, "0 of 3 advertisements", "unicast VRRP"},
		{"no VRRP", advertised("multicast", got(0, 0), got(0, 0)), Fail, "0 of 3 advertisements", "all nodes would hold the VIP"},
		{"routed", advertised("unicast", got(3, 254), got(3, 255)), Fail, "3 of 3 advertisements", "TTL 254"},
		{"lossy", advertised("unicast", got(2, 255), got(3, 255)), Warning, "2 of 3 advertisements", "lost"},
	} {
		in := testkit.In(t, tt.name)
		testkit.Equal(in, tt.result, tt.check.Result)
		testkit.Equal(in, tt.figure, tt.check.Figure)
		testkit.Contains(in, tt.check.Cause, tt.cause)
		if pass := tt.result == Pass; pass != (tt.check.Next == "") || pass != (tt.check.Cause == "") {
			in.Errorf("%+v", tt.check)
		}
	}
}

func TestFind(t *testing.T) {
	here := []nodeAddress{
		{netip.MustParsePrefix("192.0.2.10/32"), 2, true},
		{netip.MustParsePrefix("192.0.2.1/24"), 2, true},
		{netip.MustParsePrefix("198.51.100.1/24"), 3, true},
		{netip.MustParsePrefix("2001:db8::f/64"), 3, false},
		{netip.MustParsePrefix("2001:db8::1/64"), 2, true},
		{netip.MustParsePrefix("fe80::1/64"), 2, true},
	}
	o := Options{Peer: netip.MustParseAddr("192.0.2.2"), VIPs: testkit.Addrs("192.0.2.5", "2001:db8::5")}
	for address, want := range map[string]string{
		"192.0.2.250":   "192.0.2.1/24",
		"198.51.100.9":  "198.51.100.1/24",
		"2001:db8::250": "2001:db8::1/64",
		"192.0.2.5":     "192.0.2.5 is a VIP of this cluster: name an address that is not in use",
		"2001:db8::5":   "2001:db8::5 is a VIP",
		"192.0.2.10":    "this node has 192.0.2.10 already",
		"192.0.2.2":     "192.0.2.2 is the peer's address",
		"192.0.2.0":     "192.0.2.0 is no address of a host of 192.0.2.0/24",
		"192.0.2.255":   "192.0.2.255 is no address of a host",
		"2001:db8::":    "2001:db8:: is no address of a host",
		"fe80::9":       "fe80::9 is in no subnet of this node",
		"203.0.113.1":   "203.0.113.1 is in no subnet of this node, which has 192.0.2.10/32, 192.0.2.1/24",
	} {
		on, err := o.find(netip.MustParseAddr(address), here)
		if err != nil {
			testkit.Contains(testkit.In(t, address), err.Error(), want)
			continue
		}
		testkit.Equal(testkit.In(t, address), want, on.prefix.String())
	}
}
