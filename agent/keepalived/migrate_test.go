package keepalived

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/migration"
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
func (c *cluster) mover(name string, n int, kept, mode string, change func(*node)) *node {
	c.t.Helper()
	node := c.add(name, "master", n)
	c.register(node)
	node.Write(keptSettings, []byte(kept))
	if mode != "" {
		node.Write(v1alpha1.UserModeFile, []byte(mode))
	}
	if change != nil {
		change(node)
	}
	node.start()
	return node
}

// plan writes a mode file with a time of migration to all nodes.
func (c *cluster) plan(file string, at time.Time) {
	c.t.Helper()
	for _, n := range c.nodes {
		n.Write(v1alpha1.UserModeFile, fmt.Appendf(nil, "%stime: %s\n", file, at.UTC().Format(time.RFC3339)))
	}
}

// planSoon plans a migration on all nodes, and returns the time that the first one chose. Nodes
// of a busy machine that could not agree in time get a later one, as the agent demands.
func (c *cluster) planSoon(file string) (at time.Time) {
	c.t.Helper()
	return c.planSoonAmong(file, c.all(), func(time.Time) {})
}

// planSoonAmong is planSoon where only some of the nodes publish their agreement; before is
// called with each time before they receive it.
func (c *cluster) planSoonAmong(file string, nodes []string, before func(at time.Time)) (at time.Time) {
	c.t.Helper()
	for lead := 25 * time.Second; ; lead *= 2 {
		at = time.Now().Add(lead).UTC().Truncate(time.Second)
		before(at)
		c.plan(file, at)
		missed := false
		for _, name := range nodes {
			c.nodes[name].awaitState("all have agreed on "+at.Format(time.RFC3339), func(s state.Keepalived) bool {
				m := s.Migration
				missed = m != nil && strings.Contains(m.WaitsFor, at.Format(time.RFC3339)+" passed before all nodes had agreed")
				return s.Migrations.Migrated > 0 || m != nil && m.Agreed && m.At.Equal(at) || missed
			})
			if missed {
				break
			}
		}
		if !missed {
			return at
		}
		c.t.Logf("this machine was late: not all had agreed on %s within %v", at.Format(time.RFC3339), lead)
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

// A node that missed the migration runs the settings of the others when it returns: by their
// announcements or, without an API server, by their advertisements. One that returns before the
// migration runs its own.
func TestMigrationMissed(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	tests := []struct {
		name        string
		others      string // settings of the others, current and previous
		othersFile  string
		want        v1alpha1.Mode
		wordsHidden bool
	}{
		{"moved, by their announcement", multicastKept, "mode: multicast\n", v1alpha1.ModeMulticast, false},
		{"moved, by their adverts", multicastKept, "mode: multicast\n", v1alpha1.ModeMulticast, true},
		{"not moved, by their announcement", unicastKept, "", v1alpha1.ModeUnicast, false},
		{"not moved, by their adverts", unicastKept, "", v1alpha1.ModeUnicast, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newCluster(t)
			for i, name := range []string{"cp-1", "cp-2"} {
				c.mover(name, 11+i, tt.others, tt.othersFile, nil)
			}
			late := c.add("cp-3", "master", 13)
			c.register(late)
			for _, name := range []string{"cp-1", "cp-2"} {
				c.nodes[name].awaitState("it runs and knows the late one", func(s state.Keepalived) bool {
					return electsIn(tt.want)(s) &&
						(tt.want == v1alpha1.ModeMulticast || slices.Contains(s.Instances[0].Peers, late.address.Addr()))
				})
			}
			holder := c.holder("cp-1", "cp-2")
			late.Write(keptSettings, []byte(unicastKept))
			late.Write(v1alpha1.UserModeFile, []byte("mode: multicast\n"))
			if tt.wordsHidden {
				c.cutOff(late)
			}
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

// All nodes get the same mode file and migrate at one planned time; an invalid file is not
// applied.
func TestMigration(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	c := newCluster(t)
	c.controlPlane(3)
	c.awaitRunning()
	holder := c.holder(c.all()...)
	n := c.nodes[holder]
	n.Write(v1alpha1.UserModeFile, []byte("mode: multicast\nmodus: multicast\n"))
	s := n.awaitState("the mode file is wrong", func(s state.Keepalived) bool { return s.Migrations.Refused == 1 && s.Migration != nil })
	if !strings.Contains(s.Migration.WaitsFor, "modus") || s.Migration.Ready {
		t.Errorf("%+v", s.Migration)
	}
	at := c.planSoon("mode: multicast\n")
	for _, name := range c.all() {
		s := c.nodes[name].awaitState("it has moved", electsIn(v1alpha1.ModeMulticast))
		if before := time.Until(at); before > 0 {
			t.Errorf("%s has moved %v before the instant", name, before)
		}
		if s.Migrations.Migrated != 1 || s.Migrations.RolledBack != 0 {
			t.Errorf("%s: %+v", name, s.Migrations)
		}
	}
	c.holder(c.all()...)
}

// A node that does not receive the announcements of the others, such as one behind an API
// server that is cut off, cannot know that all have agreed. It migrates when it receives their
// new advertisements.
func TestMigrationFollowed(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	c := newCluster(t)
	c.controlPlane(2)
	c.awaitRunning()
	blind := c.add("cp-3", "master", 13)
	c.register(blind)
	c.cutOff(blind)
	spec, err := v1alpha1.LoadClusterConfig("cluster.yaml", c.clusterConfig(t))
	testkit.Must(t, err)
	to := spec.Spec.VRRP.Target
	to.Mode = v1alpha1.ModeMulticast
	had := func(at time.Time) { // agreed before that
		t.Helper()
		said := migration.Announcement{Running: spec.Spec.VRRP.Target.String(), Ready: to.String(), At: at}
		c.list.Patch(daemon.NodesPath+"/cp-3", daemon.Object{"metadata": daemon.Object{"annotations": daemon.Object{"vipgen.io/vrrp": said.Encode()}}})
	}
	blind.Write(keptSettings, []byte(fastUnicast))
	later := time.Now().Add(time.Hour).UTC().Truncate(time.Second) // however long its start takes
	had(later)
	c.plan("mode: multicast\n", later)
	blind.start()
	blind.awaitState("it knows of nobody who is ready", func(s state.Keepalived) bool {
		return running(s) && s.Migration != nil && strings.Contains(s.Migration.WaitsFor, "no agent there")
	})
	c.planSoonAmong("mode: multicast\n", c.others("cp-3"), had)
	for _, name := range c.all() {
		s := c.nodes[name].awaitState("it has moved", electsIn(v1alpha1.ModeMulticast))
		if s.Migrations.Migrated != 1 || s.Migrations.RolledBack != 0 {
			t.Errorf("%s: %+v", name, s.Migrations)
		}
	}
	c.holder(c.all()...)
}
