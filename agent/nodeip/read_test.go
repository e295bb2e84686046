package nodeip

import (
	"net"
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/testkit"
)

// Of the kernel's routes, unicast ones through links that work are read, one for each next hop.
func TestRoute(t *testing.T) {
	_, network, err := net.ParseCIDR("198.51.100.0/24")
	testkit.Must(t, err)
	gateway, via := net.ParseIP("192.0.2.1"), net.ParseIP("fe80::1")
	any4, any6, to := netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0"), netip.MustParsePrefix("198.51.100.0/24")
	address4, address6 := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("fe80::1")
	tests := map[string]struct {
		in   netlink.Route
		want []Route
	}{
		"no unicast":    {netlink.Route{Type: unix.RTN_BLACKHOLE, Dst: network}, nil},
		"a network":     {netlink.Route{Type: unix.RTN_UNICAST, Dst: network, LinkIndex: 2, Priority: 100}, []Route{{Link: 2, Destination: to, Metric: 100}}},
		"IPv4 default":  {netlink.Route{Type: unix.RTN_UNICAST, Family: netlink.FAMILY_V4, LinkIndex: 2, Gw: gateway}, []Route{{Link: 2, Destination: any4, Gateway: address4}}},
		"IPv6 default":  {netlink.Route{Type: unix.RTN_UNICAST, Family: netlink.FAMILY_V6, LinkIndex: 2, Gw: via}, []Route{{Link: 2, Destination: any6, Gateway: address6}}},
		"advertised":    {netlink.Route{Type: unix.RTN_UNICAST, Dst: network, LinkIndex: 2, Protocol: unix.RTPROT_RA}, []Route{{Link: 2, Destination: to, Advertised: true}}},
		"kernel's IPv4": {netlink.Route{Type: unix.RTN_UNICAST, Dst: network, LinkIndex: 2, Protocol: unix.RTPROT_KERNEL}, []Route{{Link: 2, Destination: to}}},
		"two of three hops": {netlink.Route{Type: unix.RTN_UNICAST, Dst: network, MultiPath: []*netlink.NexthopInfo{
			{LinkIndex: 2, Gw: gateway, Flags: unix.RTNH_F_DEAD}, {LinkIndex: 3, Gw: gateway}, {LinkIndex: 4, Via: &netlink.Via{AddrFamily: netlink.FAMILY_V6, Addr: via}},
		}}, []Route{{Link: 3, Destination: to, Gateway: address4}, {Link: 4, Destination: to, Gateway: address6}}},
	}
	for name, tt := range tests {
		testkit.Equal(testkit.In(t, name), tt.want, route(tt.in))
	}
}
