package firewall

import (
	"fmt"

	"github.com/vipgen/vipgen/agent/job"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

var name = state.Firewall{}.JobName()

// Kind is the job in the agent's registry.
var Kind = job.Kind{
	Name:  name,
	Short: "Redirect the API VIPs to HAProxy while it serves",
	Long: `Maintain the nftables rules that redirect connections to an API VIP to this node's
HAProxy, while the haproxy job reports that it serves; on compute nodes only those of the
node itself. Rules that something removes are restored; all are removed when the job stops.
The environment variable NODE_NAME holds the name of this node.`,
	Example: "  NODE_NAME=master-0 vipgen-agent firewall --role=master",
	Port:    func(p v1alpha1.Ports) int { return p.FirewallMonitor },
	Kept:    v1alpha1.JobDir(name) + "/cluster.yaml",
	New: func(e job.Environment) job.Job {
		return &Job{Source: e.Source, State: e.State, Log: e.Log}
	},
	Probed: "whether the firewall job is alive",
	Summary: job.Summarize(func(p *state.Firewall) [][]string {
		rows := [][]string{
			{name, job.Either(p.InPlace, "redirect in place", "no redirect"), job.Addresses(p.VIPs), fmt.Sprintf("restored %d", p.Restored), p.Why},
			{"  own requests", job.Either(p.Own, "HAProxy here", "holder of the VIP")},
		}
		if p.Operators != "" {
			rows = append(rows, []string{"  OpenShift's redirect", "still here", p.Operators})
		}
		return rows
	}),
}
