package keepalived

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// neverTwo fails the test if two nodes hold the VIP at any time until the returned function is
// called, except for as long as a late machine explains. All nodes exist already.
func (c *cluster) neverTwo() (stop func()) {
	end := make(chan struct{})
	var watching sync.WaitGroup
	watch := testkit.StartStopwatch()
	var longest time.Duration
	var who []string
	watching.Go(func() {
		look := time.NewTicker(10 * time.Millisecond)
		defer look.Stop()
		var began time.Time
		for {
			select {
			case <-end:
				return
			case <-look.C:
			}
			now, holders := time.Now(), c.holders()
			switch {
			case len(holders) < 2:
				began = time.Time{}
			case began.IsZero(): // reading all nodes takes a moment, in which the VIP may move
				began = now
			case now.Sub(began) > longest:
				longest, who = now.Sub(began), holders
			}
		}
	})
	stop = sync.OnceFunc(func() {
		close(end)
		watching.Wait()
		testkit.Promise(c.t, fmt.Sprintf("split brain of %v", who), longest, 0, lateSplitBrain, watch.End())
	})
	c.t.Cleanup(stop)
	return stop
}

// lateSplitBrain is the split brain that a late machine explains: a holder without CPU time for
// its advertisements receives those of its successor, once a second with classic, when it runs
// again.
const lateSplitBrain = 2 * time.Second

// stayed reports whether the VIP stayed on its node, and fails the test if not, except on a
// machine that was late for as long as a backup waits.
func (c *cluster) stayed(when, was string, seen []string, late time.Duration) bool {
	c.t.Helper()
	if slices.Equal(seen, []string{was}) {
		return true
	}
	s := c.nodes[was].awaitState("its VRRP settings", func(s state.Keepalived) bool { return s.VRRP != nil })
	if !testkit.Explained(c.t, fmt.Sprintf("%s: the VIP is on %v, want %s", when, seen, was), late, 3*time.Duration(s.VRRP.AdvertIntervalMS)*time.Millisecond) {
		c.t.FailNow()
	}
	return false
}

// One of two control-plane nodes is registered: it leaves the VIP to the bootstrap host, holds
// it alone when that is gone, and still when the other node joins. Only the annotation of the
// ConfigMap has the bootstrap host's address.
func TestHardCase13OneOfTwo(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	c := newCluster(t)
	boot, first, second := c.add("bootstrap", "bootstrap", 10), c.add("cp-1", "master", 11), c.add("cp-2", "master", 12)
	two := bytes.Replace(read(t, "every-pool"+v1alpha1.ClusterConfigPath), []byte("replicas: 3"), []byte("replicas: 2"), 1)
	for _, n := range []*node{boot, first, second} {
		n.Write(v1alpha1.ClusterConfigPath, two)
	}
	defer c.neverTwo()()
	boot.start()
	c.holder("bootstrap")
	c.register(first)
	first.start()
	first.awaitState("nobody else is known", isLeftOut("no other control-plane node"))
	boot.awaitState("it knows the first", func(s state.Keepalived) bool { return len(s.Instances) == 1 && len(s.Instances[0].Peers) == 1 })

	c.list.SetBootstrap("192.168.111.10")
	first.awaitState("the bootstrap is a peer", func(s state.Keepalived) bool {
		return running(s) && len(s.Instances) == 1 && len(s.Instances[0].Peers) == 1
	})
	c.holder("bootstrap")

	boot.unready()
	boot.awaitState("it is over", isLeftOut("has gone"))
	c.holder("cp-1")
	c.list.SetBootstrap("")
	first.awaitGone()
	alone := first.awaitState("it runs on", running)
	c.holder("cp-1")

	c.register(second)
	second.start()
	second.awaitState("it runs", running)
	both := first.awaitState("the other is a peer", func(s state.Keepalived) bool {
		conf, err := os.ReadFile(first.Path(v1alpha1.KeepalivedConf))
		return err == nil && strings.Contains(string(conf), "192.168.111.12 min_ttl 255") && len(s.Instances) == 1
	})
	c.holder("cp-1")
	if both.PID != alone.PID || both.Restarts != 0 {
		t.Errorf("keepalived was started again: %+v, %+v", alone, both)
	}

	// The second node never knew the bootstrap host, which does not return while that node is
	// there.
	boot.ready()
	boot.awaitState("it stays out", isLeftOut("does without this bootstrap host"))
	first.agent.Kill()
	c.holder("cp-2")
}

// awaitGone waits until the node has recorded on disk that there is no bootstrap host.
func (n *node) awaitGone() {
	n.t.Helper()
	testkit.Await(n.t, n.name+" to note that the bootstrap is gone", func() bool {
		data, err := os.ReadFile(n.Path(keepDir + "/.vipgen-nodes.json"))
		return err == nil && strings.Contains(string(data), `"gone":true`)
	})
}

// mismatched reports whether a node stays out of the API group because of its Node object. With
// the role of a worker it may be in another group.
func mismatched(s state.Keepalived) bool {
	return slices.ContainsFunc(s.LeftOut, func(i string) bool { return strings.Contains(i, vrrp.LeftOutMismatch.Text()) }) &&
		!slices.ContainsFunc(s.Instances, func(i state.Instance) bool { return strings.Contains(i.Name, "API") })
}

// The Node object of one node, the holder or not, contains an address first that it does not have,
// or another role, so that the others send it no advertisements or drop its own: there is never a
// split brain, and once it is corrected the node takes part.
func TestHardCase37MisreadNode(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	for family, l := range families {
		t.Run(family, func(t *testing.T) {
			leaveIPv6(t, l)
			t.Parallel()
			c := newClusterOf(t, l)
			c.controlPlane(3)
			for _, misread := range []func(n *node){
				func(n *node) {
					c.list.SetNode(n.name, n.role, c.host(99).Addr().String(), n.address.Addr().String())
				},
				func(n *node) { c.list.SetNode(n.name, "worker", n.address.Addr().String()) },
			} {
				c.awaitRunning()
				holder := c.holder(c.all()...)
				for _, name := range []string{holder, c.others(holder)[0]} {
					n := c.nodes[name]
					stop := c.neverTwo()
					misread(n)
					n.awaitState("the others see it elsewhere", mismatched)
					c.holder(c.others(n.name)...)
					c.register(n)
					n.awaitState("it is in the API group", func(s state.Keepalived) bool { return running(s) && !mismatched(s) && s.Instances != nil })
					c.holder(c.all()...)
					stop()
				}
			}
		})
	}
}
