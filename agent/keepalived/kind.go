package keepalived

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/vipgen/vipgen/agent/job"
	"github.com/vipgen/vipgen/agent/nodelist"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
)

var jobName = state.Keepalived{}.JobName()

// Kind is the job in the agent's registry.
var Kind = job.Kind{
	Name:  jobName,
	Short: "Run keepalived on this node, if it can hold VIPs",
	Long: `Run keepalived as a child process while this node takes part in the election of VIPs,
with a configuration rendered from the cluster's facts, this node's addresses and the
other nodes. The environment variable NODE_NAME holds the name of this node. At SIGTERM
keepalived releases its VIPs and ends.`,
	Example: "  NODE_NAME=master-0 vipgen-agent keepalived --role=master --kubeconfig=/var/lib/kubelet/kubeconfig",
	Port:    func(p v1alpha1.Ports) int { return p.KeepalivedMonitor },
	Conf:    v1alpha1.KeepalivedConf,
	// Routers decide on ingress VIPs, the bootstrap on API VIPs.
	Watch: func(role string, o *nodelist.Options) {
		o.RouterPods = role != v1alpha1.RoleBootstrap && role != v1alpha1.RoleArbiter
		o.Bootstrap = role == v1alpha1.RoleMaster || role == v1alpha1.RoleArbiter || role == v1alpha1.RoleBootstrap
	},
	New: func(e job.Environment) job.Job {
		return &Job{Root: e.Root, Source: e.Source, State: e.State, Program: "keepalived", Checks: e.Checks, Log: e.Log}
	},
	Probed:  "whether keepalived answers, or need not run",
	Probe:   func(ctx context.Context, e job.Environment) error { return probeDaemon(ctx, e.State, e.Root) },
	Summary: job.Summarize(rows),
}

func rows(s *state.Keepalived) [][]string {
	out := [][]string{{jobName, job.Either(s.Wanted, "takes part", "takes no part"), fmt.Sprintf("restarts %d", s.Restarts)}}
	out = append(out, lists.Map(s.LeftOut, func(why string) []string { return []string{"", why} })...)
	if s.Scheduling != "" {
		out = append(out, []string{"  scheduling", s.Scheduling})
	}
	out = append(out, settingsRows(s)...)
	if s.Wanted || len(s.Guard.Dropped) > 0 {
		out = append(out, guardRow(&s.Guard))
	}
	for _, i := range s.Instances {
		out = append(out, []string{"  " + i.VIP.String(), whereHeld(&i), sum(&i), fmt.Sprintf("on %s, %d peers", i.Interface, len(i.Peers))})
	}
	return append(out, job.LastReload(s.LastReload, cmp.Or(s.ClusterProblem, s.Problem)))
}

// settingsRows returns the node's VRRP settings, and the progress of a migration.
func settingsRows(s *state.Keepalived) [][]string {
	if s.VRRP == nil {
		return nil
	}
	out := [][]string{{"  VRRP settings", s.VRRP.String()}}
	m := s.Migration
	if m == nil {
		return out
	}
	row := []string{"  migrates to", m.Target.String(), job.Either(m.Ready, "ready", "not ready")}
	switch {
	case m.Migrating:
		return append(out, append(row, "now"))
	case m.Agreed:
		return append(out, append(row, "all migrate at "+m.At.UTC().Format(time.RFC3339)))
	}
	return append(out, row, []string{"  waits for", m.WaitsFor})
}

// guardRow returns the state of the guard and its dropped packets.
func guardRow(g *state.Guard) []string {
	out := []string{"  guard", job.Either(g.InPlace, "in place", "not in place"), fmt.Sprintf("restored %d", g.Restored)}
	for _, d := range g.Dropped {
		out = append(out, fmt.Sprintf("router ID %d on %s, %s: %d packets dropped", d.RouterID, d.Interface, d.Family, d.Packets))
	}
	return out
}

// whereHeld describes the holder of the VIP, as far as this node knows.
func whereHeld(i *state.Instance) string {
	switch h := i.Holder; {
	case i.Holds:
		return "held here"
	case h == nil:
		return "not held here"
	default:
		return fmt.Sprintf("held by %s, priority %d", cmp.Or(h.Node, h.Address.String()), h.Priority)
	}
}

// sum describes a priority as the sum of its parts.
func sum(i *state.Instance) string {
	text := fmt.Sprintf("priority %d = %d", i.Priority, i.Base)
	for _, t := range i.Terms {
		if t.On {
			text += fmt.Sprintf(" %+d %s", t.Points, t.Name)
		}
	}
	if i.Fault {
		text += ", in fault"
	}
	return text
}
