package agentcli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/mdns"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

func (a *app) mdnsCommand() *cobra.Command {
	var role string
	c := &cobra.Command{
		Use:   "mdns --role ROLE",
		Short: "Publish this node's name on its link, and find those of others",
		Long: `Publish <host>.local and a workstation service for this node's addresses over
Multicast DNS, and collect the hosts that others publish, for CoreDNS on this node
while no API server knows the nodes. The environment variable NODE_NAME holds the
name of this node, whose first label is the host. At SIGTERM it takes back what it
published, and ends.`,
		Example: "  NODE_NAME=master-0 vipgen-agent mdns --role=master",
		Args:    args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if role == "" {
				return usage(c, errors.New("--role is missing"))
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
