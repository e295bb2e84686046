package keepalived

import (
	"slices"
	"testing"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/testkit"
)

// The ingress VIP is on a node with a ready router of the default controller (hard case 21),
// follows the router, and is on no node while there is none.
func TestHardCase21RouterMoves(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	c := newCluster(t)
	c.vip = c.ingress
	c.add("bootstrap", "bootstrap", 10) // whose API server the workers read
	for i, name := range []string{"worker-1", "worker-2", "worker-3"} {
		n := c.add(name, "worker", 31+i)
		c.register(n)
		n.Write(keptSettings, []byte(fastUnicast))
		n.start()
	}
	for _, name := range []string{"worker-1", "worker-2", "worker-3"} {
		c.nodes[name].awaitState("it runs", running)
		c.nodes[name].awaitState("no router", func(s state.Keepalived) bool { return len(s.Instances) == 1 && s.Instances[0].Fault })
		c.nodes[name].valid()
	}
	c.holder("")

	here := c.nodes["worker-2"]
	stop := here.serve(1936) // some router answers, of a controller that is not the default
	s := here.awaitState("a router answers", func(s state.Keepalived) bool { return !s.Instances[0].Fault && s.Instances[0].Priority == 30 })
	c.holder("worker-2")
	c.list.SetRouter("default", "worker-3", true)
	other := c.nodes["worker-3"]
	other.serve(1936)
	other.awaitState("the default router is here", func(s state.Keepalived) bool { return s.Instances[0].Priority == 80 })
	c.holder("worker-3")
	c.list.SetRouter("default", "worker-3", false)
	c.list.SetRouter("default", "worker-2", true)
	c.holder("worker-2")
	stop()
	c.holder("worker-3") // which still answers
	c.list.SetRouter("blue", "worker-3", true)
	other.awaitState("another controller's router took its place", func(s state.Keepalived) bool { return s.Instances[0].Fault })
	c.holder("")
	c.list.SetRouter("blue", "worker-3", false)
	c.holder("worker-3")
	if got := slices.IndexFunc(s.Instances[0].Terms, func(t state.Term) bool { return t.Name == "ingress-here" && t.Points == 50 }); got < 0 {
		t.Errorf("terms %+v", s.Instances[0].Terms)
	}
}
