package tickle

import (
	"net/netip"
	"reflect"
	"testing"

	"github.com/vipgen/vipgen/internal/netdump"
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
		{Own: client("192.0.2.5:6443"), Peer: client("198.51.100.9:40003")}, // opened while HAProxy did not serve
		{Own: client("192.0.2.5:22623"), Peer: client("198.51.100.9:40004")},
		{Own: client("[2001:db8::11]:9445"), Peer: client("[2001:db8:1::9]:40001")},
		{Own: client("192.0.2.7:443"), Peer: client("198.51.100.9:40005")},
		// Neither to a VIP, nor of a client elsewhere.
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
		if n, length := count(got[api4.Address]), len(got.encode(true)); n != MaxClients || length > maxLength {
			t.Errorf("%d clients, %d bytes", n, length)
		}
	})
	t.Run("ports of a program that connects from the VIP", func(t *testing.T) {
		open := []netdump.Connection{{Own: client("192.0.2.5:6443"), Peer: client("198.51.100.9:1")}}
		for i := range 2 * maxPorts {
			open = append(open, netdump.Connection{Own: netip.AddrPortFrom(api4.Address, uint16(40000+i)), Peer: client("198.51.100.9:443")})
		}
		got := pick(open, vips, []netip.Addr{api4.Address})[api4.Address]
		if len(got) != maxPorts || len(got[6443]) != 1 {
			t.Errorf("%d ports, %v", len(got), got[6443])
		}
	})
}
