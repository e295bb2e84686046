package keepalived

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

const classicKept = `{"profile":"classic","mode":"unicast","version":2,"advertIntervalMS":1000}`

// newMembers starts three control-plane nodes that took part before, as their files say.
func newMembers(t *testing.T, l layout, kept, mode string) *cluster {
	t.Helper()
	c := newClusterOf(t, l)
	for i := range 3 {
		c.mover(fmt.Sprintf("cp-%d", i+1), 11+i, kept, mode, nil)
	}
	return c
}

// inForceEverywhere are settings that a cluster has, with the mode file that says so.
var inForceEverywhere = map[string][2]string{
	"fast":    {unicastKept, ""},
	"classic": {classicKept, "mode: unicast\nprofile: classic\n"},
}

// triesEach is how often the node returns, with each family and profile.
const triesEach = 5

// A node that was deleted from the cluster while it was off, and whose credentials have
// expired, is powered on: it never holds the VIP beside the holder. When it is a node of
// the cluster again, it takes part.
func TestHardCase36DeletedNodeReturns(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	tries := 0
	defer func() {
		if !t.Failed() {
			t.Logf("%d times a deleted node has returned, and never was there a split brain", tries)
		}
	}()
	for family, l := range families {
		for profile, x := range inForceEverywhere {
			t.Run(family+" "+profile, func(t *testing.T) {
				if family != "IPv4" || profile != "fast" {
					testkit.Long(t)
				}
				c := newMembers(t, l, x[0], x[1])
				c.holder(c.all()...)
				gone := c.nodes["cp-3"]
				gone.awaitState("it runs", running)
				testkit.Await(t, "the list on its disk", func() bool {
					return strings.Contains(gone.file(keepDir+"/.vipgen-nodes.json"), "cp-1")
				})
				gone.agent.Stop()
				c.list.Nodes.Remove(gone.name)
				for _, other := range c.others(gone.name) {
					n := c.nodes[other]
					testkit.Await(t, other+" to forget it", func() bool {
						return !strings.Contains(n.file(v1alpha1.KeepalivedConf), gone.address.Addr().String())
					})
				}
				holder := c.holder(c.others(gone.name)...)
				c.list.Expire(gone.address.Addr().String())
				gone.api.Away.Store(true)
				defer c.neverTwo()()
				for range triesEach { // each time it has its files from before
					gone.start()
					gone.awaitState("it is in doubt", idle("no API server says that the cluster has it"))
					gone.agent.Stop()
				}
				tries += triesEach
				if got := c.holder(c.all()...); got != holder {
					t.Errorf("the VIP has moved from %s to %s", holder, got)
				}
				gone.start()
				gone.awaitState("it is in doubt", idle("no API server says that the cluster has it"))
				gone.api.Away.Store(false)
				c.register(gone)
				gone.awaitState("it runs", running)
				c.holder(c.all()...)
			})
		}
	}
}

// All nodes lose their power while there is no API server: the VIP comes back, and an
// agent that restarts meanwhile takes part.
func TestHardCase19PowerCycleWithoutAPI(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	for profile, x := range inForceEverywhere {
		t.Run(profile, func(t *testing.T) {
			if profile != "fast" {
				testkit.Long(t)
			}
			c := newMembers(t, ipv4, x[0], x[1])
			c.holder(c.all()...)
			for _, n := range c.nodes {
				n.awaitState("it runs", running)
				n.api.Away.Store(true)
			}
			for _, n := range c.nodes {
				n.agent.Stop()
			}
			defer c.neverTwo()()
			for _, n := range c.nodes {
				n.start()
			}
			c.holder(c.all()...)
			n := c.nodes["cp-2"]
			n.agent.Stop()
			n.start()
			n.awaitState("it runs", running)
			c.holder(c.all()...)
			for _, other := range c.others("cp-2") {
				c.nodes[other].agent.Stop()
			}
			c.holder("cp-2")
		})
	}
}

// file is what a file of the node says, nothing if there is none.
func (n *node) file(path string) string {
	data, _ := os.ReadFile(n.Path(path))
	return string(data)
}
