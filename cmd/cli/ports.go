package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/render/ports"
)

func (a *app) portsCommand() *cobra.Command {
	var f inputFlags
	var o outputFlag
	var role string
	c := &cobra.Command{
		Use:   "ports [install-config.yaml]",
		Short: "Print the ports that nodes need open for their VIPs",
		Long: `Print every port and protocol that nodes of each role have to let in for their VIPs,
for the cluster's names and for what the VIPs lead to, from whom and to which address:
as a table, as JSON, as rules of nftables for the chain input of a table inet filter, or
as commands of firewalld. What is on loopback alone, and the other ports of Kubernetes,
are not among them.`,
		Example: `  vipgen ports install-config.yaml

  # Rules for the workers
  vipgen ports install-config.yaml --role worker -o nft`,
		Args:              args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: completeYAML,
		RunE: func(c *cobra.Command, args []string) error {
			cluster, err := a.quietCluster(installConfigArg(args), &f)
			if err != nil {
				return err
			}
			roles := cluster.Roles
			if role != "" {
				if !slices.Contains(roles, role) {
					return usage(c, fmt.Errorf("--role %s: this cluster has %s", role, strings.Join(roles, ", ")))
				}
				roles = []string{role}
			}
			var rules []ports.Rule
			for _, r := range roles {
				rules = append(rules, ports.Rules(cluster, r)...)
			}
			switch o {
			case "json":
				return a.printJSON(rules)
			case "nft":
				return ports.NFT(a.out, rules)
			case "firewalld":
				return ports.Firewalld(a.out, rules)
			}
			return ports.Text(a.out, rules)
		},
	}
	f.add(c)
	o.add(c, "text", "json", "nft", "firewalld")
	c.Flags().StringVar(&role, "role", "", "only nodes of this `role`")
	return c
}
