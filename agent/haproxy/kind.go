package haproxy

import (
	"context"
	"fmt"

	"github.com/vipgen/vipgen/agent/job"
	"github.com/vipgen/vipgen/agent/nodelist"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

var name = state.HAProxy{}.JobName()

// Kind is the job in the agent's registry.
var Kind = job.Kind{
	Name:  name,
	Short: "Run HAProxy on this node, in front of every API server",
	Long: `Run HAProxy as a child process, with every known control-plane node as a backend. A
change is checked by HAProxy's parser, and reloaded without refusing or resetting a
connection. The environment variable NODE_NAME holds the name of this node. At SIGTERM
HAProxy accepts no more connections, drains existing ones for 20s at most, and ends.`,
	Example: "  NODE_NAME=master-0 vipgen-agent haproxy --role=master --kubeconfig=/var/lib/kubelet/kubeconfig",
	Port:    func(p v1alpha1.Ports) int { return p.HAProxyMonitor },
	Conf:    v1alpha1.HAProxyConf,
	// The backends depend on the control plane only, on compute nodes too.
	Watch: func(_ string, o *nodelist.Options) { o.ControlPlane = true },
	New: func(e job.Environment) job.Job {
		return &Job{Source: e.Source, State: e.State, Checks: e.Checks, Log: e.Log}
	},
	Probed:  "whether HAProxy answers",
	Probe:   func(ctx context.Context, _ job.Environment) error { return probe(ctx) },
	Summary: job.Summarize(rows),
}

func rows(s *state.HAProxy) [][]string {
	out := [][]string{{name, job.Either(s.Serving, "serves", "does not serve: "+s.Why), fmt.Sprintf("restarts %d, reloads %d", s.Restarts, s.Reloads)}}
	for _, b := range s.Backends {
		out = append(out, []string{"  " + b.Name, job.Either(b.Up, "up", "down"), b.Address})
	}
	return append(out, job.LastReload(s.LastReload, s.Problem))
}
