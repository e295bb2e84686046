package daemon

import (
	"testing"

	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
)

// NewNetwork makes a network that goes away with the test, which is live.
func NewNetwork(t testing.TB) *netns.Network {
	t.Helper()
	testkit.Live(t)
	network, err := netns.New()
	testkit.Must(t, err)
	testkit.Cleanup(t, network.Close)
	return network
}
