package mdns

import (
	"context"
	"fmt"

	"github.com/vipgen/vipgen/agent/job"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

var name = state.MDNS{}.JobName()

// Kind is the job in the agent's registry.
var Kind = job.Kind{
	Name:  name,
	Short: "Publish this node's name by mDNS, and discover other nodes",
	Long: `Publish <host>.local and a workstation service for this node's addresses by multicast
DNS, and collect the published hosts of other nodes, for CoreDNS on this node until an
API server has the nodes. The environment variable NODE_NAME holds the name of this
node; its first label is the host. At SIGTERM it withdraws its records and ends.`,
	Example: "  NODE_NAME=master-0 vipgen-agent mdns --role=master",
	Port:    func(p v1alpha1.Ports) int { return p.MDNSMonitor },
	New: func(e job.Environment) job.Job {
		return &Job{Source: e.Source, State: e.State, Log: e.Log}
	},
	Probed: "whether the mdns job answers for this node's name",
	Probe: func(ctx context.Context, e job.Environment) error {
		why, err := probe(ctx, e.State)
		if why != "" {
			e.Log.Warn("the node's name is not published, and a restart would not help", "why", why)
		}
		return err
	},
	Summary: job.Summarize(rows),
}

func rows(p *state.MDNS) [][]string {
	out := [][]string{{name, "not announced", p.Name, p.Why}}
	if p.Announced {
		out[0] = []string{name, "announced", p.Name, fmt.Sprintf("%s on %s", job.Addresses(p.Addresses), p.Interface)}
	}
	for _, h := range p.Hosts {
		out = append(out, []string{"  " + h.Name, "found", job.Addresses(h.Addresses)})
	}
	if p.Problem != "" {
		out = append(out, []string{"  problem", job.FirstLine(p.Problem)})
	}
	return out
}
