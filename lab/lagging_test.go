package lab

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/templates/pod"
)

// A backup does not migrate: its agent stops working after all have agreed, and its keepalived
// continues with the previous settings. TestMigration has a holder that does not.
func TestMigrationLaggingPeer(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	fast := v1alpha1.VRRP{Profile: v1alpha1.ProfileFast, Mode: v1alpha1.ModeUnicast}.Settings()
	multicast := fast
	multicast.Mode = v1alpha1.ModeMulticast
	c := newClusterOf(t, Config{Cluster: load(t, demo), Plan: planOf(3, 0)})
	c.awaitSettings(fast.String())
	broken := c.holder(t, api)
	for _, n := range c.nodes {
		if has, _ := n.Has(api6); n.Name != broken.Name && !has {
			broken = n
		}
	}
	// Until the others are certain, and roll back: docs/upgrade.md.
	c.lagging(t, broken, fast, multicast, 6*time.Second)
}

// All have agreed, and the agent of a node stops working before the instant: the others
// migrate, receive advertisements with the previous settings, and roll back.
func (c *cluster) lagging(t *testing.T, broken *node, from, to v1alpha1.VRRPSettings, bound time.Duration) {
	o := c.observe()
	c.modeFile(fmt.Sprintf("mode: %s\nprofile: %s\n", to.Mode, to.Profile), c.nodes...)
	c.agreed(t)
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	c.must(broken.Signal(ctx, pod.Keepalived, "keepalived", "vipgen-agent", syscall.SIGSTOP))
	var back []string
	testkit.Await(t, "the others on the control plane to migrate and roll back", func() bool {
		back = nil
		for _, n := range c.masters() {
			if settings, s := n.vrrp(); n.Name != broken.Name && s.Migrations.RolledBack > 0 && settings == from.String() {
				back = append(back, n.Name)
			}
		}
		return len(back) == 2
	})
	c.must(broken.Signal(ctx, pod.Keepalived, "keepalived", "vipgen-agent", syscall.SIGCONT))
	for _, vip := range c.vips {
		if c.heldByControlPlane(vip) {
			c.holder(t, vip)
		}
	}
	most := time.Duration(from.AdvertIntervalMS+3*to.AdvertIntervalMS) * time.Millisecond
	o.ends(t, "the agent of "+broken.Name+" does not migrate", most, bound)
	show(t, back[0]+"$ vipgen-agent status", firstLines(c.node(back[0]).exec(pod.Keepalived, "keepalived", "/vipgen/vipgen-agent", "status"), 3))
}

// heldByControlPlane reports whether the control plane holds the VIP.
func (c *cluster) heldByControlPlane(vip netip.Addr) bool {
	return slices.Contains(c.VIPs(v1alpha1.GroupAPI), vip)
}
