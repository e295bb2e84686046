package keepalived

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/attack"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// An advertisement with the new settings that another host forges with a peer's address
// migrates no node before the agreed instant.
func TestForgedAdvertMigratesNoNode(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	c := newCluster(t)
	c.controlPlane(3)
	c.awaitRunning()
	holder := c.holder(c.all()...)
	x := newIntruder(t, c.net, families["IPv4"].host(66))
	c.plan("profile: classic\n", time.Now().Add(time.Hour)) // however long the forged ones are sent
	for _, name := range c.all() {
		c.nodes[name].awaitState("all have agreed", func(s state.Keepalived) bool { return s.Migration != nil && s.Migration.Agreed })
	}
	forged := attack.VRRP{Name: "classic, of a peer", Version: 2, Interval: time.Second, TTL: 255, Source: attack.Peer}
	for _, name := range c.all() {
		n, peer := c.nodes[name], c.nodes[c.others(name)[0]]
		flood := x.flood(forged, families["IPv4"].apiVIP, peer.address.Addr(), n.address.Addr(), 2)
		testkit.Await(t, name+" to ignore the advert", func() bool {
			return strings.Contains(n.agent.Output(), "advertisements with the new VRRP settings ignored")
		})
		flood.Stop()
		t.Logf("%s: %d adverts", name, flood.Sent())
	}
	if got := c.holders(); !slices.Equal(got, []string{holder}) {
		t.Errorf("the VIP is on %v, want %s", got, holder)
	}
	at := c.planSoon("profile: classic\n")
	for _, name := range c.all() {
		s := c.nodes[name].awaitState("it has moved", func(s state.Keepalived) bool { return s.Migrations.Migrated > 0 })
		if before := time.Until(at); before > 0 {
			t.Errorf("%s has moved %v before the instant", name, before)
		}
		testkit.Equal(testkit.In(t, name), 0, s.Migrations.RolledBack)
	}
	for _, name := range c.all() {
		c.nodes[name].awaitState("it has the settings of all", func(s state.Keepalived) bool {
			return running(s) && s.VRRP != nil && s.VRRP.Profile == v1alpha1.ProfileClassic
		})
	}
	c.holder(holder)
}

// A node that blocks the migration is excluded: it gives up its VIPs and takes no part, the
// others migrate, and it follows when the file no longer names it.
func TestMigrationWithout(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	c := newCluster(t)
	c.controlPlane(3)
	c.awaitRunning()
	broken := c.holder(c.all()...)
	others := c.others(broken)
	for _, name := range others {
		c.nodes[name].Write(v1alpha1.UserModeFile, []byte("mode: multicast\n"))
	}
	for _, name := range others {
		c.nodes[name].awaitState("it names the node that is not ready", func(s state.Keepalived) bool {
			return s.Migration != nil && strings.HasPrefix(s.Migration.WaitsFor, broken+": ")
		})
	}
	for _, name := range c.all() {
		c.nodes[name].Write(v1alpha1.UserModeFile, []byte("mode: multicast\nwithout: ["+broken+"]\n"))
	}
	c.nodes[broken].awaitState("it takes no part", func(s state.Keepalived) bool {
		return !s.Wanted && s.Migration != nil && strings.Contains(s.Migration.WaitsFor, vrrp.LeftOutByModeFile.Text())
	})
	for _, name := range others {
		c.nodes[name].awaitState("it has moved", electsIn(v1alpha1.ModeMulticast))
	}
	holder := c.holder(others...)
	if s, _ := c.nodes[broken].state(); s.Wanted {
		t.Errorf("%s takes part: %+v", broken, s)
	}
	c.nodes[broken].Write(v1alpha1.UserModeFile, []byte("mode: multicast\n"))
	s := c.nodes[broken].awaitState("it runs as the others", electsIn(v1alpha1.ModeMulticast))
	testkit.Equal(t, 0, s.Migrations.Migrated)
	c.holder(holder)
}
