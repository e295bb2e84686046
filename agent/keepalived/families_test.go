package keepalived

import (
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// The same over IPv6: one holder; a stop and a power loss move the VIP.
func TestIPv6(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	c := newClusterOf(t, ipv6)
	c.controlPlane(3)
	first := c.holder(c.all()...)
	for _, name := range c.all() {
		c.nodes[name].valid()
	}
	testkit.Equal(t, 0, c.nodes[first].agent.Stop())
	second := c.holder(c.others(first)...)
	testkit.Must(t, c.nodes[second].Kill())
	c.nodes[second].setLink(false)
	if err := c.nodes[second].clear(c.vip); err != nil { // as at a power loss
		t.Fatal(err)
	}
	c.holder(c.others(second)...)
}
