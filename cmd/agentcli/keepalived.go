package agentcli

import (
	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/keepalived"
	"github.com/vipgen/vipgen/agent/nodes"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

func (a *app) keepalivedCommand() *cobra.Command {
	return a.serviceCommand(&cobra.Command{
		Use:   "keepalived --role ROLE",
		Short: "Run keepalived on this node, if it can hold VIPs",
		Long: `Run keepalived as a child process while this node takes part in the election of VIPs,
with a configuration rendered from the cluster's facts, this node's addresses and the
other nodes. The environment variable NODE_NAME holds the name of this node. At SIGTERM
keepalived releases its VIPs and ends.`,
		Example: "  NODE_NAME=master-0 vipgen-agent keepalived --role=master --kubeconfig=/var/lib/kubelet/kubeconfig",
	}, daemonJob{
		conf: v1alpha1.KeepalivedConf,
		job: func(s *facts.Source, dir *state.Dir, checks *health.Metrics) job {
			return &keepalived.Job{Root: a.root, Source: s, State: dir, Program: "keepalived", Checks: checks, Log: a.log}
		},
		// Routers decide on an ingress VIP, the bootstrap on the API's.
		watch: func(role string, o *nodes.Options) {
			o.RouterPods = role != v1alpha1.RoleBootstrap && role != v1alpha1.RoleArbiter
			o.Bootstrap = role == v1alpha1.RoleMaster || role == v1alpha1.RoleArbiter || role == v1alpha1.RoleBootstrap
		},
	})
}
