package keepalived

import (
	"testing"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/testkit"
)

// Hard case 43: a holder that shuts down first hands its VIP over to a peer, so that keepalived
// has none left when it stops; the last node shuts down as well.
func TestHardCase43HandOver(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.controlPlane(2)
	first := c.holder(c.all()...)
	second := c.others(first)[0]
	for _, name := range c.all() {
		c.nodes[name].awaitState("its API server counts", func(s state.Keepalived) bool { return len(s.Instances) == 1 && s.Instances[0].Priority == 45 })
	}
	ends := func(name string) string {
		t.Helper()
		testkit.Equal(testkit.In(t, name), 0, c.nodes[name].agent.Stop())
		return c.nodes[name].agent.Output()
	}
	testkit.Contains(testkit.In(t, first), ends(first), "VIPs handed over before the end", "gone=true")
	c.holder(second)
	testkit.Contains(testkit.In(t, second), ends(second), "gone=false")
	testkit.Await(t, "no node to hold the VIP", func() bool { return len(c.holders()) == 0 })
}
