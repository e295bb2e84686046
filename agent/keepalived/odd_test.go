package keepalived

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// listAs registers a node with the given addresses and role, whatever it really has.
func (c *cluster) listAs(n *node, role string, addresses ...netip.Addr) {
	var list []string
	for _, a := range addresses {
		list = append(list, a.String())
	}
	c.list.SetNode(n.name, role, list...)
}

// misread are Nodes from which other nodes derive a wrong address of the node, or none.
var misread = map[string]func(c *cluster, n *node){
	"an odd address first": func(c *cluster, n *node) { c.listAs(n, n.role, c.host(99).Addr(), n.address.Addr()) },
	"an odd address alone": func(c *cluster, n *node) { c.listAs(n, n.role, c.host(99).Addr()) },
	"a peer's address first": func(c *cluster, n *node) {
		c.listAs(n, n.role, c.nodes[c.others(n.name)[0]].address.Addr(), n.address.Addr())
	},
	"no address":   func(c *cluster, n *node) { c.listAs(n, n.role) },
	"another role": func(c *cluster, n *node) { c.listAs(n, "worker", n.address.Addr()) },
}

// mismatched reports whether a node stays out of the API group because of its Node object. With
// the role of a worker it may be in another group.
func mismatched(s state.Keepalived) bool {
	return slices.ContainsFunc(s.LeftOut, func(i string) bool { return strings.Contains(i, vrrp.LeftOutMismatch.Text()) }) &&
		!slices.ContainsFunc(s.Instances, func(i state.Instance) bool { return strings.Contains(i.Name, "API") })
}

// Whatever the Node object of one node contains, such that the others send it no advertisements
// or drop its own: there is never a split brain, and once it is corrected the node takes part.
func TestHardCase37MisreadNode(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	for family, l := range families {
		t.Run(family, func(t *testing.T) {
			leaveIPv6(t, l)
			t.Parallel()
			c := newClusterOf(t, l)
			c.controlPlane(3)
			for name, misread := range misread {
				t.Run(name, func(t *testing.T) {
					for _, who := range []func(holder string) string{
						func(holder string) string { return holder },
						func(holder string) string { return c.others(holder)[0] },
					} {
						c.awaitRunning()
						n := c.nodes[who(c.holder(c.all()...))]
						stop := c.neverTwo()
						misread(c, n)
						n.awaitState("the others see it elsewhere", mismatched)
						c.holder(c.others(n.name)...)
						c.register(n)
						n.awaitState("it is in the API group", func(s state.Keepalived) bool { return running(s) && !mismatched(s) && s.Instances != nil })
						c.holder(c.all()...)
						stop()
					}
				})
			}
		})
	}
}

// The only node left has a misleading Node object: after a while it takes the VIP, which no
// other node holds, and gives it up when another one joins, whose advertisements it cannot
// receive.
func TestHardCase37MisreadAlone(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	for family, l := range families {
		t.Run(family, func(t *testing.T) {
			leaveIPv6(t, l)
			t.Parallel()
			c := newClusterOf(t, l)
			c.controlPlane(3)
			c.awaitRunning()
			n := c.nodes[c.holder(c.all()...)]
			misread["an odd address first"](c, n)
			n.awaitState("the others see it elsewhere", mismatched)
			others := c.others(n.name)
			c.holder(others...)
			for _, name := range others {
				c.nodes[name].agent.Stop()
			}
			c.holder(n.name)
			c.nodes[others[0]].start()
			n.awaitState("another one has the VIP", mismatched)
			c.holder(others[0])
			c.nodes[others[0]].agent.Stop()
			c.holder(n.name)
			defer c.neverTwo()()
			pid := n.awaitState("it runs", running).PID
			c.register(n)
			c.nodes[others[1]].start()
			c.nodes[others[1]].awaitState("it runs", running)
			if s := n.awaitState("it runs", running); s.PID != pid {
				t.Error("keepalived was stopped when the others came to know the only holder")
			}
			c.holder(c.all()...)
		})
	}
}
