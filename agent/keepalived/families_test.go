package keepalived

import (
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// The same in IPv6: one holder, a stop and a power cut hand the VIP on.
func TestIPv6(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	c := newClusterOf(t, ipv6)
	c.controlPlane(3)
	first := c.holder(c.all()...)
	for _, name := range c.all() {
		c.nodes[name].valid()
	}
	if code := c.nodes[first].agent.Stop(); code != 0 {
		t.Errorf("the agent ends with %d", code)
	}
	second := c.holder(c.others(first)...)
	if err := c.nodes[second].Kill(); err != nil {
		t.Fatal(err)
	}
	c.nodes[second].setLink(false)
	if err := c.nodes[second].clear(c.vip); err != nil { // as the power goes
		t.Fatal(err)
	}
	c.holder(c.others(second)...)
}
