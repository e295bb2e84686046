package coredns

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"strings"

	"github.com/vipgen/vipgen/agent/job"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

var name = state.CoreDNS{}.JobName()

// Kind is the job in the agent's registry.
var Kind = job.Kind{
	Name:  name,
	Short: "Run CoreDNS on this node, with the cluster's names",
	Long: `Run CoreDNS as a child process. It answers for the API's names, the ingress domains
and the nodes, and forwards everything else to the network's name servers. The
environment variable NODE_NAME holds the name of this node.`,
	Example: "  NODE_NAME=worker-0 vipgen-agent coredns --role=worker --kubeconfig=/var/lib/kubelet/kubeconfig",
	Port:    func(p v1alpha1.Ports) int { return p.CoreDNSMonitor },
	Conf:    v1alpha1.Corefile,
	New: func(e job.Environment) job.Job {
		return &Job{Source: e.Source, State: e.State, Program: program(), Checks: e.Checks, Log: e.Log}
	},
	Probed:  "whether CoreDNS answers for the API's name",
	Probe:   func(ctx context.Context, e job.Environment) error { return probe(ctx, e.State) },
	Summary: job.Summarize(rows),
}

// program returns the path of CoreDNS: in PATH in OpenShift's image, in the root
// directory of the project's own.
func program() string {
	if _, err := exec.LookPath("coredns"); err != nil {
		return "/coredns"
	}
	return "coredns"
}

func rows(s *state.CoreDNS) [][]string {
	out := [][]string{
		{name, job.Either(s.Serving, "serves", "does not serve: "+s.Why), fmt.Sprintf("restarts %d, reloads %d", s.Restarts, s.Reloads)},
		{"  upstreams", cmp.Or(strings.Join(s.Upstreams, " "), "none")},
	}
	if len(s.MDNS) > 0 {
		out = append(out, []string{"  names from mDNS", strings.Join(s.MDNS, " ")})
	}
	return append(out, job.LastReload(s.LastReload, s.Problem))
}
