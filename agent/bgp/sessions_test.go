package bgp

import (
	"net/netip"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/netdump"
	"github.com/vipgen/vipgen/internal/testkit"
)

// TestSessionOf: a connection with a router at the port of BGP, of either end, is another
// speaker's. Other ports and other hosts are not.
func TestSessionOf(t *testing.T) {
	routers := []v1alpha1.BGPPeer{{Address: netip.MustParseAddr("192.0.2.1")}, {Address: netip.MustParseAddr("2001:db8::1")}, {Interface: "ens3"}}
	for _, tt := range []struct{ own, peer, want string }{
		{"192.0.2.10:40000", "192.0.2.1:179", "a session with 192.0.2.1"},
		{"[2001:db8::10]:179", "[2001:db8::1]:40000", "a session with 2001:db8::1"},
		{"192.0.2.10:40000", "192.0.2.1:443", ""},
		{"192.0.2.10:179", "192.0.2.2:40000", ""},
		{"[fe80::10]:40000", "[fe80::1]:179", "a session with fe80::1"},
	} {
		open := []netdump.Connection{{Own: netip.MustParseAddrPort(tt.own), Peer: netip.MustParseAddrPort(tt.peer)}}
		testkit.Equal(testkit.In(t, tt.own, tt.peer), tt.want, sessionOf(open, routers))
	}
}
