package daemon

import (
	"net/netip"
	"testing"

	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
)

// NewNetwork makes a network that is removed when the test ends, and makes the test live.
func NewNetwork(t testing.TB) *netns.Network {
	t.Helper()
	testkit.Live(t)
	network, err := netns.New()
	testkit.Must(t, err)
	testkit.Cleanup(t, network.Close)
	return network
}

// FreePort returns a port of 127.0.0.1 that no other program gets until a server listens there.
func FreePort(t testing.TB) netip.AddrPort {
	t.Helper()
	loopback := netip.MustParseAddr("127.0.0.1")
	port, err := netns.FreePort(loopback)
	testkit.Must(t, err)
	return netip.AddrPortFrom(loopback, port)
}
