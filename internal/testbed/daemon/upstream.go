package daemon

import (
	"net/netip"
	"testing"

	"github.com/vipgen/vipgen/internal/testbed/names"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
)

// Upstream is a stand-in, for tests alone, for the name servers that a site
// has. It knows its records and no other name.
type Upstream struct {
	Address netip.Prefix // where it listens, on port 53
	Records []string     // as in a zone file: "www.example.org. 60 IN A 192.0.2.80"
}

// serve answers queries on a node of its own until the test ends.
func (u *Upstream) serve(t testing.TB, network *netns.Network) {
	t.Helper()
	node, err := network.AddNode("upstream", u.Address)
	testkit.Must(t, err)
	kill, err := names.Serve(node, u.Address.Addr(), u.Records...)
	testkit.Must(t, err)
	t.Cleanup(kill)
}
