package daemon

import (
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
