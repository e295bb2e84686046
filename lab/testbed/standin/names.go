package standin

import (
	"net/netip"

	"github.com/vipgen/vipgen/internal/testbed/names"
	"github.com/vipgen/vipgen/internal/testbed/netns"
)

// ExampleRecord is a record of a name outside of any cluster.
const ExampleRecord = "www.example.org. 60 IN A 203.0.113.80"

// NewNameServer starts the name server of a site: see [names.Serve].
func NewNameServer(node *netns.Node, addr netip.Addr, records ...string) (*Service, error) {
	return start(func() (func(), error) { return names.Serve(node, addr, records...) })
}
