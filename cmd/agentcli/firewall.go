package agentcli

import (
	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/firewall"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
)

func (a *app) firewallCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "firewall",
		Short: "Redirect the API VIPs to HAProxy while it serves",
		Long: `Maintain the nftables rules that redirect connections to an API VIP to this node's
HAProxy, while the haproxy job reports that it serves. They are restored when
something removes them, and removed at the end. The environment variable NODE_NAME
holds the name of this node.`,
		Example: "  NODE_NAME=master-0 vipgen-agent firewall",
		Args:    command.Args(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			name, err := nodeName()
			if err != nil {
				return err
			}
			dir, err := state.Open(a.below(v1alpha1.RunDir))
			if err != nil {
				return err
			}
			defer dir.Close()
			source := &facts.Source{
				Name: name, Role: v1alpha1.RoleMaster, ClusterConfig: a.below(a.clusterConfig),
				Kept: a.below(v1alpha1.JobDir(state.Firewall{}.JobName()) + "/cluster.yaml"), Log: a.log,
			}
			return a.runTask(c.Context(), task{name: c.Name(), job: &firewall.Job{Source: source, State: dir, Log: a.log}, source: source})
		},
	}
}
