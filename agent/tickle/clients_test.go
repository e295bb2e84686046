package tickle

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/netdump"
	"github.com/vipgen/vipgen/internal/testkit"
)

func addr(s string) netip.Addr       { return netip.MustParseAddr(s) }
func client(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }
func clients(s ...string) (out []netip.AddrPort) {
	for _, a := range s {
		out = append(out, client(a))
	}
	return out
}

// Two API VIPs, of which both families are redirected, and one of an ingress controller.
var (
	api4    = VIP{Address: addr("192.0.2.5"), Source: addr("192.0.2.11"), Peers: []netip.Addr{addr("192.0.2.12")}, Redirected: map[uint16]uint16{9445: 6443}}
	api6    = VIP{Address: addr("2001:db8::5"), Source: addr("2001:db8::11"), Peers: []netip.Addr{addr("2001:db8::12")}, Redirected: map[uint16]uint16{9445: 6443}}
	ingress = VIP{Address: addr("192.0.2.7"), Source: addr("192.0.2.11"), Peers: []netip.Addr{addr("192.0.2.13")}}
	vips    = []VIP{api4, api6, ingress}
	own     = []netip.Addr{addr("127.0.0.1"), addr("192.0.2.11"), addr("2001:db8::11")}
)

func TestPick(t *testing.T) {
	open := []netdump.Connection{
		{Own: client("192.0.2.11:9445"), Peer: client("198.51.100.9:40002")}, // redirected
		{Own: client("192.0.2.11:9445"), Peer: client("198.51.100.9:40001")},
		{Own: client("192.0.2.5:6443"), Peer: client("198.51.100.9:40003")}, // while HAProxy did not serve
		{Own: client("192.0.2.5:22623"), Peer: client("198.51.100.9:40004")},
		{Own: client("[2001:db8::11]:9445"), Peer: client("[2001:db8:1::9]:40001")},
		{Own: client("192.0.2.7:443"), Peer: client("198.51.100.9:40005")},
		// None of a VIP's, or of a client elsewhere.
		{Own: client("192.0.2.11:9445"), Peer: client("192.0.2.11:40006")},
		{Own: client("127.0.0.1:9445"), Peer: client("127.0.0.1:40006")},
		{Own: client("192.0.2.5:6443"), Peer: client("192.0.2.11:40006")},
		{Own: client("192.0.2.11:10250"), Peer: client("198.51.100.9:40007")},
		{Own: client("192.0.2.11:40008"), Peer: client("192.0.2.12:6443")},
		{Own: client("[fe80::11]:9445"), Peer: client("[fe80::9]:40009")},
	}
	for name, tt := range map[string]struct {
		held []netip.Addr
		want Clients
	}{
		"none": {nil, Clients{}},
		"the API's": {[]netip.Addr{api4.Address, api6.Address}, Clients{
			api4.Address: {6443: clients("198.51.100.9:40001", "198.51.100.9:40002", "198.51.100.9:40003"), 22623: clients("198.51.100.9:40004")},
			api6.Address: {6443: clients("[2001:db8:1::9]:40001")},
		}},
		"the ingress controller's": {[]netip.Addr{ingress.Address}, Clients{ingress.Address: {443: clients("198.51.100.9:40005")}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := pick(open, vips, append(tt.held, own...)); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %v\nwant %v", got, tt.want)
			}
		})
	}
	t.Run("too many", func(t *testing.T) {
		var many []netdump.Connection
		for i := range MaxClients + 10 {
			many = append(many, netdump.Connection{Own: client("192.0.2.5:6443"), Peer: netip.AddrPortFrom(addr("198.51.100.9"), uint16(i+1))})
		}
		got := pick(many, vips, []netip.Addr{api4.Address})
		body, err := json.Marshal(got)
		testkit.Must(t, err)
		if n := count(got[api4.Address]); n != MaxClients || len(body) > maxBody {
			t.Errorf("%d clients, %d bytes", n, len(body))
		}
	})
}

// A VIP without clients is told as well: they are gone.
func TestDecode(t *testing.T) {
	for _, c := range []Clients{
		{}, {api4.Address: {}},
		{api4.Address: {6443: clients("198.51.100.9:1")}, api6.Address: {6443: clients("[2001:db8:1::9]:65535")}, ingress.Address: {80: clients("192.0.2.99:2"), 443: nil}},
	} {
		body, err := json.Marshal(c)
		testkit.Must(t, err)
		if got, err := decode(body, vips); err != nil || !reflect.DeepEqual(got, c) {
			t.Errorf("%s: %v, %v", body, got, err)
		}
	}
	for body, want := range map[string]string{
		``:                             "no list of clients",
		`[]`:                           "no list of clients",
		`{"192.0.2.5":{"6443":["x"]}}`: "no list of clients",
		`{"192.0.2.5":{"70000":[]}}`:   "no list of clients",
		`{"192.0.2.9":{"6443":["198.51.100.9:1"]}}`:                                                        "192.0.2.9 is no VIP",
		`{"::ffff:192.0.2.5":{}}`:                                                                          "is no VIP",
		`{"192.0.2.5":{"0":["198.51.100.9:1"]}}`:                                                           "is no client",
		`{"192.0.2.5":{"6443":["198.51.100.9:0"]}}`:                                                        "is no client",
		`{"192.0.2.5":{"6443":["[2001:db8:1::9]:1"]}}`:                                                     "is no client",
		`{"192.0.2.5":{"6443":["127.0.0.1:1"]}}`:                                                           "is no client",
		`{"192.0.2.5":{"6443":["224.0.0.1:1"]}}`:                                                           "is no client",
		`{"192.0.2.5":{"6443":["255.255.255.255:1"]}}`:                                                     "is no client",
		`{"192.0.2.5":{"6443":["0.0.0.0:1"]}}`:                                                             "is no client",
		`{"2001:db8::5":{"6443":["[fe80::9%eth0]:1"]}}`:                                                    "is no client",
		`{"2001:db8::5":{"6443":["[ff02::1]:1"]}}`:                                                         "is no client",
		`{"2001:db8::5":{"6443":["[::ffff:1.2.3.4]:1"]}}`:                                                  "is no client",
		`{"192.0.2.5":{"6443":["198.51.100.9:1"` + strings.Repeat(`,"198.51.100.9:1"`, MaxClients) + `]}}`: fmt.Sprintf("more than %d", MaxClients),
	} {
		if got, err := decode([]byte(body), vips); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, %v; want %s", body, got, err, want)
		}
	}
}

// A peer of both families is told of each client once.
func TestByFamily(t *testing.T) {
	got := Clients{api4.Address: {6443: clients("198.51.100.9:1")}, api6.Address: {}}.byFamily()
	for four, want := range map[bool]string{true: `{"192.0.2.5":{"6443":["198.51.100.9:1"]}}`, false: `{"2001:db8::5":{}}`} {
		if string(got[four]) != want {
			t.Errorf("%s, want %s", got[four], want)
		}
	}
}

// Whatever a neighbour sends, what is taken is of a VIP and a client that could be.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"192.0.2.5":{"6443":["198.51.100.9:1"]}}`))
	f.Add([]byte(`{"2001:db8::5":{"6443":["[2001:db8:1::9]:1"]},"192.0.2.7":{}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := decode(body, vips)
		if err != nil {
			return
		}
		for vip, ports := range got {
			for _, list := range ports {
				for _, c := range list {
					if !c.Addr().IsGlobalUnicast() || c.Addr().Is4() != vip.Is4() || c.Port() == 0 {
						t.Errorf("%s of %s", c, vip)
					}
				}
			}
		}
	})
}
