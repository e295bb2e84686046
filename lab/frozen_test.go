package lab

import (
	"fmt"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/testbed/probe"
	"github.com/vipgen/vipgen/lab/testbed/watch"
)

// freezeTime is how long no API server answers: longer than an election of etcd on slow disks.
const freezeTime = 10 * time.Second

// No API server answers for a while, as during an election of etcd: no node is better, so no
// VIP moves and no redirect is removed. A machine that is late itself may move a VIP, or delay
// HAProxy's answer, which proves nothing here.
func testAllAPIServersFreeze(t *testing.T, c *cluster) {
	redirects := func() (out []state.Firewall, missing int) {
		for _, n := range c.masters() {
			s, alive := published[state.Firewall](n)
			if !alive || !s.InPlace {
				missing++
			}
			out = append(out, s)
		}
		return out, missing
	}
	testkit.Await(t, "all redirects to be in place", func() bool { _, missing := redirects(); return missing == 0 })
	before, _ := redirects()
	machine, w := testkit.StartStopwatch(), c.watchVIPs(time.Now())
	for _, n := range c.masters() {
		c.must(n.API.Freeze())
		t.Cleanup(func() { n.API.Thaw() })
	}
	gone := 0
	for began := time.Now(); time.Since(began) < freezeTime; time.Sleep(probe.DefaultEvery) {
		_, missing := redirects()
		gone = max(gone, missing)
	}
	for _, n := range c.masters() {
		c.must(n.API.Thaw())
	}
	for _, n := range c.masters() {
		c.awaitBackend(t, n.backend(true))
	}
	p := c.startProbe(t, api)
	p.answers(t, 20)
	p.expect(t, 0)
	timeline, err := w.End()
	late := machine.End()
	c.must(err)
	moves := len(timeline.In(watch.Addresses)) - len(c.vips)
	after, _ := redirects()
	placed := 0
	for i := range after {
		if !after[i].Since.Equal(before[i].Since) {
			placed++
		}
	}
	show(t, "no API server answers for "+freezeTime.String(), fmt.Sprintf("%d VIPs moved, %d redirects went (this machine was late by %v at most)", moves, max(gone, placed), late))
	testkit.Promise(t, fmt.Sprintf("redirects that went, before %+v, after %+v", before, after), max(gone, placed), 0, len(before), late)
	if moves != 0 {
		testkit.Explained(t, fmt.Sprintf("%d VIPs moved: %v", moves, timeline.In(watch.Addresses)), late, 4*time.Duration(c.Spec().VRRP.Target.AdvertIntervalMS)*time.Millisecond)
	}
}
