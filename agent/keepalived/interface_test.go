package keepalived

import (
	"testing"
	"time"

	runner "github.com/vipgen/vipgen/agent/daemon"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vishvananda/netlink"
)

// rename renames the node's link while it is down, as udev does.
func (n *node) rename(to string) {
	n.t.Helper()
	err := n.Do(func() error {
		l, err := netlink.LinkByName(n.Link)
		if err != nil {
			return err
		}
		if err := netlink.LinkSetDown(l); err != nil {
			return err
		}
		if err := netlink.LinkSetName(l, to); err != nil {
			return err
		}
		return netlink.LinkSetUp(l)
	})
	testkit.Must(n.t, err)
	n.Link = to
}

// setLink takes the node's link down or up.
func (n *node) setLink(up bool) {
	n.t.Helper()
	testkit.Must(n.t, n.SetLink(up))
}

// The link of the holder is renamed, goes down and comes back, and flaps: one
// node holds the VIP each time.
func TestInterfaceFaults(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	c := newCluster(t)
	c.controlPlane(3)
	t.Run("renamed", func(t *testing.T) {
		n := c.nodes[c.holder(c.all()...)]
		n.rename("ens192")
		n.awaitState("the instance is on ens192", func(s state.Keepalived) bool {
			return len(s.Instances) == 1 && s.Instances[0].Interface == "ens192" && s.Problem == "" && s.PID != 0
		})
		c.holder(c.all()...)
		n.valid()
		for _, other := range c.others(n.name) {
			c.nodes[other].agent.Stop()
		}
		c.holder(n.name)
		testkit.Equal(t, []string{"ens192"}, n.linksWith(apiVIP))
		for _, other := range c.others(n.name) {
			c.nodes[other].start()
			c.nodes[other].awaitState("it runs", running)
		}
	})
	t.Run("down", func(t *testing.T) {
		n := c.nodes[c.holder(c.all()...)]
		n.setLink(false)
		n.awaitState("it has no link", isLeftOut("no address of the family"))
		c.holder(c.others(n.name)...)
		n.setLink(true)
		n.awaitState("it runs", running)
		c.holder(c.all()...)
		n.valid()
	})
	t.Run("flapping", func(t *testing.T) {
		for tries := 1; ; tries++ {
			n := c.nodes[c.holder(c.all()...)]
			before := n.awaitState("it runs", running)
			began, down := time.Now(), time.Duration(0)
			for range 10 {
				at := time.Now()
				n.setLink(false)
				n.setLink(true)
				down = max(down, time.Since(at))
			}
			took := time.Since(began)
			c.holder(c.all()...)
			after := n.awaitState("it runs", running)
			n.valid()
			// A link that is down for longer is not flapping, nor is one that still flaps at
			// the latest reading.
			if quiet := runner.DefaultTiming; down >= quiet.Quiet || took >= quiet.MaxDelay {
				t.Logf("try %d: this machine was late, the link was down for up to %v, in %v", tries, down, took)
				continue
			}
			if most := 2 + int(time.Since(began)/runner.DefaultTiming.MinInterval); after.PID != before.PID || after.Reloads > before.Reloads+most {
				t.Errorf("before %+v, after %+v", before, after)
			}
			return
		}
	})
	for _, name := range c.all() {
		c.nodes[name].awaitProcesses(3)
	}
}
