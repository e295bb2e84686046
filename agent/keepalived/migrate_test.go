package keepalived

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
)

const (
	multicastKept = `{"profile":"fast","mode":"multicast","version":3,"advertIntervalMS":40}`
	unicastKept   = `{"profile":"fast","mode":"unicast","version":3,"advertIntervalMS":40}`
)

func electsIn(m v1alpha1.Mode) func(state.Keepalived) bool {
	return func(s state.Keepalived) bool { return running(s) && s.VRRP != nil && s.VRRP.Mode == m }
}

// mover adds and starts a registered control-plane node with recorded settings and a mode file.
func (c *cluster) mover(name string, n int, kept, mode string) {
	c.t.Helper()
	node := c.add(name, "master", n)
	c.register(node)
	node.Write(keptSettings, []byte(kept))
	if mode != "" {
		node.Write(v1alpha1.UserModeFile, []byte(mode))
	}
	node.start()
}

// migrateSoon plans a migration on all nodes, and waits until they agree. Nodes of a busy machine
// that could not agree in time get a later time, as the agent demands.
func (c *cluster) migrateSoon(file string) {
	c.t.Helper()
	missed := true
	for lead := 25 * time.Second; missed; lead *= 2 {
		missed = false
		at := time.Now().Add(lead).UTC().Truncate(time.Second)
		text := at.Format(time.RFC3339)
		for _, n := range c.nodes {
			n.Write(v1alpha1.UserModeFile, fmt.Appendf(nil, "%stime: %s\n", file, text))
		}
		for _, n := range c.nodes {
			n.awaitState("all have agreed on "+text, func(s state.Keepalived) bool {
				m := s.Migration
				missed = missed || m != nil && strings.Contains(m.WaitsFor, text+" passed before all nodes had agreed")
				return s.Migrations.Migrated > 0 || m != nil && m.Agreed && m.At.Equal(at) || missed
			})
		}
	}
}

// cutOff replaces a node's API server with one that lists the nodes, but receives no
// announcements.
func (c *cluster) cutOff(n *node) {
	c.t.Helper()
	alone := daemon.NewAPI(c.t)
	n.join(alone)
	for _, x := range c.nodes {
		alone.SetNode(x.name, x.role, x.address.Addr().String())
	}
}

// A node that missed the migration, and reads no announcement, runs the settings of the others
// when it returns, by their advertisements. One that returns before the migration runs its own.
func TestMigrationMissed(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	for _, tt := range []struct {
		name, others, othersFile string // settings of the others
		want                     v1alpha1.Mode
	}{
		{"moved", multicastKept, "mode: multicast\n", v1alpha1.ModeMulticast},
		{"not moved", unicastKept, "", v1alpha1.ModeUnicast},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCluster(t)
			c.mover("cp-1", 11, tt.others, tt.othersFile)
			c.mover("cp-2", 12, tt.others, tt.othersFile)
			late := c.add("cp-3", "master", 13)
			c.register(late)
			for _, name := range c.others("cp-3") {
				c.nodes[name].awaitState("it runs and knows the late one", func(s state.Keepalived) bool {
					return electsIn(tt.want)(s) &&
						(tt.want == v1alpha1.ModeMulticast || slices.Contains(s.Instances[0].Peers, late.address.Addr()))
				})
			}
			holder := c.holder("cp-1", "cp-2")
			late.Write(keptSettings, []byte(unicastKept))
			late.Write(v1alpha1.UserModeFile, []byte("mode: multicast\n"))
			c.cutOff(late)
			late.start()
			late.awaitState("it runs as the others", electsIn(tt.want))
			c.holder(holder)
			if tt.want == v1alpha1.ModeUnicast {
				late.awaitState("it waits for the others", func(s state.Keepalived) bool {
					return s.Migration != nil && strings.HasPrefix(s.Migration.WaitsFor, "cp-1: ")
				})
			}
		})
	}
}
