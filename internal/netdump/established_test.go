package netdump

import (
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// Both ends of a connection are listed, of either family, even if an IPv6 socket accepted IPv4;
// a listener is not.
func TestEstablished(t *testing.T) {
	for _, tt := range []struct{ network, listen, dial string }{
		{"tcp4", "127.0.0.1:0", "127.0.0.1"},
		{"tcp6", "[::1]:0", "::1"},
		{"tcp", ":0", "127.0.0.1"},
	} {
		listener, err := net.Listen(tt.network, tt.listen)
		testkit.Must(t, err)
		defer listener.Close()
		at := netip.AddrPortFrom(netip.MustParseAddr(tt.dial), uint16(listener.Addr().(*net.TCPAddr).Port))
		client, err := net.Dial("tcp", at.String())
		testkit.Must(t, err)
		defer client.Close()
		from := client.LocalAddr().(*net.TCPAddr).AddrPort()
		all, err := Established()
		testkit.Must(t, err)
		for _, want := range []Connection{{at, from}, {from, at}} {
			if !slices.Contains(all, want) {
				t.Errorf("%s: no %v among %v", tt.listen, want, all)
			}
		}
		if slices.ContainsFunc(all, func(c Connection) bool { return c.Peer.Port() == 0 }) {
			t.Errorf("a listener among %v", all)
		}
	}
}
