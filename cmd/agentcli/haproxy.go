package agentcli

import (
	"context"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/agent/coredns"
	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/haproxy"
	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

func (a *app) haproxyCommand() *cobra.Command {
	return a.serviceCommand(&cobra.Command{
		Use:   "haproxy --role ROLE",
		Short: "Run HAProxy on this node, in front of every API server",
		Long: `Run HAProxy as a child process, with every known control-plane node as a backend. A
change is checked by HAProxy's parser, and reloaded without refusing or resetting a
connection. The environment variable NODE_NAME holds the name of this node. At SIGTERM
HAProxy accepts no more connections, drains existing ones for 20s at most, and ends.`,
		Example: "  NODE_NAME=master-0 vipgen-agent haproxy --role=master --kubeconfig=/var/lib/kubelet/kubeconfig",
	}, daemonJob{conf: v1alpha1.HAProxyConf, job: func(s *facts.Source, dir *state.Dir, checks *health.Metrics) job {
		return &haproxy.Job{Source: s, State: dir, Checks: checks, Log: a.log}
	}})
}

func (a *app) corednsCommand() *cobra.Command {
	return a.serviceCommand(&cobra.Command{
		Use:   "coredns --role ROLE",
		Short: "Run CoreDNS on this node, with the cluster's names",
		Long: `Run CoreDNS as a child process. It answers for the API's names, the ingress domains
and the nodes, and forwards everything else to the network's name servers. The
environment variable NODE_NAME holds the name of this node.`,
		Example: "  NODE_NAME=worker-0 vipgen-agent coredns --role=worker --kubeconfig=/var/lib/kubelet/kubeconfig",
	}, daemonJob{conf: v1alpha1.Corefile, job: func(s *facts.Source, dir *state.Dir, checks *health.Metrics) job {
		return &coredns.Job{Source: s, State: dir, Program: corednsProgram(), Checks: checks, Log: a.log}
	}})
}

// corednsProgram is in PATH in OpenShift's image, and at the top of the
// project's own.
func corednsProgram() string {
	if _, err := exec.LookPath("coredns"); err != nil {
		return "/coredns"
	}
	return "coredns"
}

func probeHAProxy(ctx context.Context, _ *state.Dir, _ string) error { return haproxy.Probe(ctx) }

func probeCoreDNS(ctx context.Context, dir *state.Dir, _ string) error {
	return coredns.Probe(ctx, dir)
}
