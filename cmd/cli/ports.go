package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/cmd/inputflags"
	"github.com/vipgen/vipgen/internal/companion/network"
	"github.com/vipgen/vipgen/internal/lists"
)

type portList struct {
	Cluster string         `json:"cluster"`
	Rules   []network.Rule `json:"rules"`
}

func (a *app) portsCommand() *cobra.Command {
	var f inputflags.Flags
	var o command.Format
	var role string
	c := &cobra.Command{
		Use:   "ports [install-config.yaml]",
		Short: "Print the ports that nodes need open for their VIPs",
		Long: `Print every port and protocol that the nodes of each role must accept for their VIPs,
for the cluster's names and for the services behind the VIPs, with sources and
destinations: as a table, as JSON, as rules of nftables for the chain input of a table
inet filter, or as commands of firewalld. Ports on loopback only, and the other ports
of Kubernetes, are not included.`,
		Example: `  vipgen ports install-config.yaml

  # Rules for the workers
  vipgen ports install-config.yaml --role worker -o nft`,
	}
	inputflags.OnCluster(c, func(c *cobra.Command, installConfig string) error {
		cluster, err := a.quietCluster(installConfig, &f)
		if err != nil {
			return err
		}
		roles := cluster.Roles
		if role != "" {
			if !slices.Contains(roles, role) {
				return command.Usagef(c, "--role %s: this cluster has %s", role, strings.Join(roles, ", "))
			}
			roles = []string{role}
		}
		rules := lists.FlatMap(roles, func(r string) []network.Rule { return network.Rules(cluster, r) })
		switch o {
		case "json":
			return a.printJSON(portList{cluster.Config.Spec.Domain, rules})
		case "nft":
			return network.NFT(a.Out, rules)
		case "firewalld":
			return network.Firewalld(a.Out, rules)
		}
		return network.Text(a.Out, rules)
	})
	f.Add(c)
	o.Add(c, "text", "json", "nft", "firewalld")
	c.Flags().StringVar(&role, "role", "", "only nodes of this `pool`")
	a.completeFrom(c, "role", &f, rolesOf, v1alpha1.RoleMaster, v1alpha1.RoleWorker, v1alpha1.RoleArbiter)
	return c
}
