package lab

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/testbed/container"
)

// TestMoveFromOpenShiftToBGP moves VIPs that OpenShift's own keepalived holds to BGP: each node gets
// vipgen's keepalived for the old VIPs and the new ones by BGP at once, then names change, and the
// old VIPs go. Clients on the subnet and behind the router use the VIPs that names have at the time.
func TestMoveFromOpenShiftToBGP(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	if _, err := os.Stat("/usr/sbin/bird"); err != nil {
		testkit.CannotRun(t, "it takes Debian's package bird2")
	}
	before, plan := load(t, managed), planOf(3, 2)
	groups := before.Config.Spec.Groups
	moved := loadWith(t, routedFrom(managed), fmt.Sprintf(lastVIPs, groups[0].VirtualRouterID, groups[1].VirtualRouterID))
	c := &cluster{t: t, top: t}
	log := c.record()
	cfg := Config{Cluster: before, Plan: plan, Log: log, Install: func(n *Node) error { return installOperators(n, before, plan, log) }}
	cfg.Images = map[string]container.Image{before.Images.Agent: {Programs: map[string]string{
		"/usr/bin/vipgen-agent": testkit.Agent(t), "/usr/bin/vipgen-bgp": testkit.Speaker(t)}}}
	c.build(t, cfg)
	both := []*netns.Node{c.Client, c.routed(t)}
	nodes := c.exchangedNodes(nil)
	nodes = append(inPool(nodes, v1alpha1.RoleWorker), inPool(nodes, v1alpha1.RoleMaster)...)
	old, fresh := vipsOf(before), vipsOf(moved)[:4]
	for _, vip := range old {
		c.holder(t, vip)
	}
	onOld := c.askFrom(t, old, both)
	c.announces(nodes, trees(t, loadWith(t, managed, nextVIPs)), 2, 2)
	onNew := c.askFrom(t, fresh, both)
	c.announces(nodes, trees(t, moved), 2, 2)
	for _, p := range onOld {
		p.answersFor(t, 2*time.Second)
		p.expect(t, 15) // a holder changes to vipgen's keepalived
	}
	c.announces(nodes, trees(t, loadWith(t, routedFrom(managed), routedOnly)), 0, 2)
	answered(t, onNew)
}
