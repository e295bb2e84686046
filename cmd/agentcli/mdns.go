package agentcli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/mdns"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
)

func (a *app) mdnsCommand() *cobra.Command {
	var role string
	c := &cobra.Command{
		Use:   "mdns --role ROLE",
		Short: "Publish this node's name by mDNS, and discover other nodes",
		Long: `Publish <host>.local and a workstation service for this node's addresses by multicast
DNS, and collect the published hosts of other nodes, for CoreDNS on this node until an
API server has the nodes. The environment variable NODE_NAME holds the name of this
node; its first label is the host. At SIGTERM it withdraws its records and ends.`,
		Example: "  NODE_NAME=master-0 vipgen-agent mdns --role=master",
		Args:    command.Args(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			if role == "" {
				return command.Usagef(c, "missing: --role ROLE")
			}
			name, err := nodeName()
			if err != nil {
				return err
			}
			dir, err := state.Open(a.below(v1alpha1.RunDir))
			if err != nil {
				return err
			}
			defer dir.Close()
			source := &facts.Source{Name: name, Role: role, ClusterConfig: a.below(a.clusterConfig), Log: a.log}
			return a.runTask(c.Context(), task{name: c.Name(), job: &mdns.Job{Source: source, State: dir, Log: a.log}, source: source})
		},
	}
	addRole(c, &role)
	return c
}

func (a *app) probeMDNS(ctx context.Context, dir *state.Dir, _ string) error {
	why, err := mdns.Probe(ctx, dir)
	if why != "" {
		a.log.Warn("the node's name is not published, which no restart would change", "why", why)
	}
	return err
}
