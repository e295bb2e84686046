package lab

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/testbed/probe"
)

// The demo's input after steps 1 and 2 of docs/change-a-vip.md.
var (
	renumbered = strings.NewReplacer(`192.0.2.5, "2001:db8::5"`, `192.0.2.15, "2001:db8::15"`, `192.0.2.6, "2001:db8::6"`, `192.0.2.16, "2001:db8::16"`).Replace(demo)
	freshIDs   = vipgenYAML + "  vrrp:\n    virtualRouterIDs: {api: 101, ingress: 102}\n"
	bothVIPs   = freshIDs + `  additionalAPIVIPs:
  - name: old
    vips: [192.0.2.5, "2001:db8::5"]
    virtualRouterID: %d
  ingress:
  - name: old
    controller: default
    vips: [192.0.2.6, "2001:db8::6"]
    virtualRouterID: %d
`
)

// TestChangeVIP changes the VIPs of API and ingress in two steps as in docs/change-a-vip.md,
// each node by node. Clients use the old VIPs until the second step, and the new ones from the
// first node on that has them.
func TestChangeVIP(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	before := load(t, demo)
	groups := before.Config.Spec.Groups
	after := loadWith(t, renumbered, freshIDs)
	c := newClusterOf(t, Config{Cluster: before, Plan: planOf(3, 2)})
	step1 := trees(t, loadWith(t, renumbered, fmt.Sprintf(bothVIPs, groups[0].VirtualRouterID, groups[1].VirtualRouterID)))
	step2 := trees(t, after)
	restarts := c.restarts()
	nodes := c.exchangedNodes(trees(t, before))
	masters, workers := inPool(nodes, v1alpha1.RoleMaster), inPool(nodes, v1alpha1.RoleWorker)
	c.check(t)
	awaitWell(t, c.Cluster)
	old, fresh := vipsOf(before), vipsOf(after)

	clients := c.askAll(t, old)
	c.changes(workers[:1], step1, 4)
	more := c.askAll(t, fresh[2:])
	c.changes(workers[1:], step1, 4)
	c.changes(masters[:1], step1, 4)
	more = append(more, c.askAll(t, fresh[:2])...)
	c.changes(masters[1:], step1, 4)
	for _, p := range clients {
		p.answersFor(t, 2*time.Second)
		p.expect(t, 0)
	}
	c.resolves(t, "192.0.2.15", "2001:db8::15", "192.0.2.16", "2001:db8::16")

	c.changes(append(workers, masters...), step2, 2)
	for _, vip := range old {
		testkit.Empty(testkit.In(t, vip), c.holders(vip))
	}
	c.vips = fresh
	c.check(t)
	for _, p := range more {
		p.answersFor(t, 2*time.Second)
		p.expect(t, 0)
	}
	testkit.Equal(t, restarts, c.restarts())
}

// askAll sends requests to VIPs of the API or of ingress, by their last digit in the demo. A
// connection that the kernel retries, after a second, counts as lost.
func (c *cluster) askAll(t *testing.T, vips []netip.Addr) (out []vipProbe) {
	t.Helper()
	for _, vip := range vips {
		c.holder(t, vip)
		at := probe.Target{URL: "https://" + netip.AddrPortFrom(vip, 6443).String() + asked, Timeout: 900 * time.Millisecond}
		if strings.HasSuffix(vip.String(), "6") {
			at.URL, at.Host = "http://"+netip.AddrPortFrom(vip, 80).String()+"/", "console.apps."+domain
		}
		out = append(out, c.asks(t, vip, probe.LiveEvery, at))
	}
	return out
}

// changes writes the files of their pools to nodes, one after the other: the next one when
// keepalived has the expected number of instances, and each of their VIPs one holder.
func (c *cluster) changes(nodes []*exchanged, to map[string]tree, instances int) {
	c.t.Helper()
	for _, x := range nodes {
		x.give(to[x.Role])
		var s state.Keepalived
		testkit.Await(c.t, fmt.Sprintf("%d instances on %s", instances, x.Name), func() bool {
			now, alive := published[state.Keepalived](x.node)
			s = now
			return alive && s.PID != 0 && len(s.Instances) == instances
		})
		for _, i := range s.Instances {
			c.holder(c.t, i.VIP)
		}
	}
}
