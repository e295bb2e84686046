package keepalived

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/testkit"
)

// step sets the machine's clock, which namespaces share, forward or back.
func step(t *testing.T, by time.Duration) {
	t.Helper()
	var now unix.Timespec
	testkit.Must(t, unix.ClockGettime(unix.CLOCK_REALTIME, &now))
	then := unix.NsecToTimespec(now.Nano() + by.Nanoseconds())
	testkit.Must(testkit.In(t, by), unix.ClockSettime(unix.CLOCK_REALTIME, &then))
}

// stepBy is far longer than any timeout of the agent and keepalived.
const stepBy = 10 * time.Minute

// The clock steps forward and back: no job is affected, and the VIP still moves when its holder
// fails.
func TestHardCase27ClockSteps(t *testing.T) {
	testkit.Only(t, "test-clock")
	c := newCluster(t)
	c.controlPlane(3)
	for _, by := range []time.Duration{stepBy, -stepBy, -stepBy, stepBy} {
		t.Run(by.String(), func(t *testing.T) {
			before := map[string]state.Keepalived{}
			for _, name := range c.all() {
				before[name] = c.nodes[name].awaitState("it runs", running)
			}
			holder := c.holder(c.all()...)
			step(t, by)
			t.Cleanup(func() { step(t, -by) })
			c.holder(holder)
			for _, name := range c.all() {
				after, alive := c.nodes[name].state()
				if b := before[name]; !alive || after.PID != b.PID || after.Restarts != b.Restarts || after.Reloads != b.Reloads {
					t.Errorf("%s: before %+v, after %+v", name, b, after)
				}
			}
			n := c.nodes[holder]
			n.agent.Kill()
			c.holder(c.others(holder)...)
			n.start()
			n.awaitState("it runs", running)
			c.holder(c.all()...)
			n.unready()
			n.awaitState("the API server counts no more", func(s state.Keepalived) bool { return s.Instances[0].Priority == 40 })
			n.ready()
			n.awaitState("the API server counts", func(s state.Keepalived) bool { return s.Instances[0].Priority == 45 })
			c.list.SetNode("cp-x", "master", c.host(90).Addr().String())
			n.awaitState("the new peer", func(s state.Keepalived) bool { return len(s.Instances[0].Peers) == 4 })
			c.list.RemoveNode("cp-x")
			n.awaitState("no new peer", func(s state.Keepalived) bool { return len(s.Instances[0].Peers) == 3 })
		})
	}
}
