package keepalived

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

const classicKept = `{"profile":"classic","mode":"unicast","version":2,"advertIntervalMS":1000}`

// newMembers starts three control-plane nodes that took part before, according to their files.
func newMembers(t *testing.T, l layout, kept, mode string) *cluster {
	t.Helper()
	c := newClusterOf(t, l)
	for i := range 3 {
		c.mover(fmt.Sprintf("cp-%d", i+1), 11+i, kept, mode, nil)
	}
	return c
}

// inForceEverywhere are settings of a cluster with the corresponding mode file.
var inForceEverywhere = map[string][2]string{
	"fast":    {unicastKept, ""},
	"classic": {classicKept, "mode: unicast\nprofile: classic\n"},
}

// triesEach is how often the node returns with each family and profile.
const triesEach = 5

// A node that was deleted from the cluster while powered off, with expired credentials, is
// powered on: it never holds the VIP alongside the holder. Once it is a node of the cluster
// again, it takes part.
func TestHardCase36DeletedNodeReturns(t *testing.T) {
	testkit.Live(t)
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
				leaveIPv6(t, l)
				c := newMembers(t, l, x[0], x[1])
				c.holder(c.all()...)
				gone := c.nodes["cp-3"]
				gone.awaitState("it runs", running)
				testkit.Await(t, "the list on its disk", func() bool {
					return strings.Contains(gone.file(keepDir+"/.vipgen-nodes.json"), "cp-1")
				})
				gone.agent.Stop()
				c.list.RemoveNode(gone.name)
				for _, other := range c.others(gone.name) {
					n := c.nodes[other]
					testkit.Await(t, other+" to forget it", func() bool {
						return !strings.Contains(n.file(v1alpha1.KeepalivedConf), gone.address.Addr().String())
					})
				}
				holder, machine := c.holder(c.others(gone.name)...), testkit.StartStopwatch()
				t.Cleanup(func() { machine.End() })
				c.list.Expire(gone.Host, gone.name)
				defer c.neverTwo()()
				for range triesEach { // each time with its old files
					gone.start()
					gone.awaitState("it is in doubt", isLeftOut("no API server says that the cluster has it"))
					gone.agent.Stop()
				}
				tries += triesEach
				c.stayed("a deleted node returns", holder, []string{c.holder(c.all()...)}, machine.End())
				gone.start()
				gone.awaitState("it is in doubt", isLeftOut("no API server says that the cluster has it"))
				c.list.Admit(gone.Host, gone.name)
				c.register(gone)
				gone.awaitState("it runs", running)
				c.holder(c.all()...)
			})
		}
	}
}

// A node is deleted from the cluster while it runs, as holder or not, and reaches no API server
// to learn of it: it leaves the VIP to the others, whose advertisements it no longer receives.
// When all of them are gone it takes the VIP, until one of them is back.
func TestHardCase36DeletedWhileCutOff(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	for family, l := range families {
		t.Run(family, func(t *testing.T) {
			leaveIPv6(t, l)
			t.Parallel()
			for what, who := range map[string]func(c *cluster) string{
				"the holder": func(c *cluster) string { return c.holder(c.all()...) },
				"a backup":   func(c *cluster) string { return c.others(c.holder(c.all()...))[0] },
			} {
				t.Run(what, func(t *testing.T) {
					t.Parallel()
					c := newMembers(t, l, unicastKept, "")
					c.awaitRunning()
					gone := c.nodes[who(c)]
					cut(c, gone)
					gone.awaitMetric("vipgen_nodes_stale", 1)
					stop := c.countTwo(gone.name)
					c.list.RemoveNode(gone.name)
					gone.awaitState("it is in doubt", isLeftOut("no API server says that the cluster has it"))
					c.holder(c.others(gone.name)...)
					t.Logf("it and another node held the VIP for %v", stop())
					if what == "a backup" {
						return
					}
					for _, other := range c.others(gone.name) {
						c.nodes[other].agent.Stop()
					}
					c.holder(gone.name)
					back := c.nodes[c.others(gone.name)[0]]
					back.start()
					gone.awaitState("it is in doubt again", isLeftOut("no API server says that the cluster has it"))
					c.holder(back.name)
				})
			}
		})
	}
}

// cut cuts a node off from all API servers, while its own stays ready.
func cut(c *cluster, n *node) {
	c.list.Refuse(n.Host, n.name)
	n.api.Kill() // and with it the watches of all
	n.launch()
}

// countTwo measures how long a node holds the VIP at the same time as another one.
func (c *cluster) countTwo(name string) (stop func() time.Duration) {
	var all time.Duration
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		last := time.Now()
		for tick := time.NewTicker(20 * time.Millisecond); ; last = time.Now() {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			if h := c.holders(); len(h) > 1 && slices.Contains(h, name) {
				all += time.Since(last)
			}
		}
	}()
	return func() time.Duration { close(done); <-ended; return all.Round(10 * time.Millisecond) }
}

// All nodes lose power while there is no API server: the VIP returns, and an agent that
// restarts meanwhile takes part.
func TestHardCase19PowerCycleWithoutAPI(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	for profile, x := range inForceEverywhere {
		t.Run(profile, func(t *testing.T) {
			c := newMembers(t, ipv4, x[0], x[1])
			c.holder(c.all()...)
			for _, n := range c.nodes {
				n.awaitState("it runs", running)
				n.api.Kill()
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

// file returns the content of a file of the node, empty if there is none.
func (n *node) file(path string) string {
	data, _ := os.ReadFile(n.Path(path))
	return string(data)
}
