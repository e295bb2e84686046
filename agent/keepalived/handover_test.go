package keepalived

import (
	"strings"
	"testing"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/testkit"
)

// Hard case 43: a holder that ends gives its VIP to a peer while it is still here, so that
// keepalived has none left when it stops; the last one of all ends as well.
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
		if code := c.nodes[name].agent.Stop(); code != 0 {
			t.Errorf("the agent of %s ends with %d", name, code)
		}
		return c.nodes[name].agent.Output()
	}
	if log := ends(first); !strings.Contains(log, "VIPs handed over before the end") || !strings.Contains(log, "gone=true") {
		t.Errorf("%s did not hand its VIP over", first)
	}
	c.holder(second)
	if log := ends(second); !strings.Contains(log, "gone=false") {
		t.Errorf("%s had nobody to give its VIP to", second)
	}
	testkit.Await(t, "nobody to hold the VIP", func() bool { return len(c.holders()) == 0 })
}
