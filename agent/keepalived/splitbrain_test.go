package keepalived

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

// Hard case 51: the Node of a backup is deleted while it is cut off from all API servers. The
// holder stops sending it advertisements, it takes the VIP, and yields within a second,
// whatever the profile: the holder answers its announcements.
func TestHardCase51SplitBrain(t *testing.T) {
	testkit.Live(t)
	settings := maps.Clone(inForceEverywhere)
	settings["virtual"] = [2]string{fmt.Sprintf(`{"profile":"virtual","mode":"unicast","version":3,"advertIntervalMS":%d}`, v1alpha1.VirtualIntervalMS), "mode: unicast\nprofile: virtual\n"}
	for family, l := range families {
		for profile, x := range settings {
			t.Run(family+" "+profile, func(t *testing.T) {
				leaveIPv6(t, l)
				c := newMembers(t, l, x[0], x[1])
				c.awaitRunning()
				holder := c.holder(c.all()...)
				gone := c.nodes[c.others(holder)[0]]
				cut(c, gone)
				gone.awaitMetric("vipgen_nodes_stale", 1)
				stop, machine := c.countTwo(gone.name), testkit.StartStopwatch()
				c.list.RemoveNode(gone.name)
				gone.awaitState("it is in doubt", isLeftOut("no API server says that the cluster has it"))
				testkit.Await(t, "the VIP to be on one node", func() bool { return len(c.holders()) == 1 })
				c.holder(c.others(gone.name)...)
				both, late := stop(), machine.End()
				t.Logf("it and another node held the VIP for %v", both)
				testkit.Promise(t, "split brain", both, time.Second, 3*time.Second, late)
			})
		}
	}
}
