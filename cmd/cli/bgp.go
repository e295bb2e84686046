package cli

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/cmd/inputflags"
	"github.com/vipgen/vipgen/internal/companion/network"
)

// routerList is the output.
type routerList struct {
	Routers []network.Router `json:"routers"`
}

func (a *app) bgpCommand() *cobra.Command {
	return command.Group(&cobra.Command{
		Use:     "bgp",
		Short:   "Configure routers that know the VIPs by BGP",
		Long:    "Configure routers that know the VIPs by BGP (spec.announce: bgp).\n\nDocumentation: " + command.Pages + "bgp.md",
		Example: "  vipgen bgp peer-config install-config.yaml --for frr",
	}, a.peerConfigCommand())
}

func (a *app) peerConfigCommand() *cobra.Command {
	var f inputflags.Flags
	var o command.Format
	var kind, router string
	c := &cobra.Command{
		Use:   "peer-config [install-config.yaml]",
		Short: "Print the configuration of routers for their sessions with nodes",
		Long: `Print what the routers of spec.bgp.peers need for their sessions with the nodes: who may
connect, the VIPs and nothing else to accept, BFD and several paths of equal cost, for FRR
or BIRD. Passwords are left out: vipgen does not read them.

Documentation: ` + command.Pages + `bgp.md`,
		Example: `  vipgen bgp peer-config install-config.yaml --for frr
  vipgen bgp peer-config install-config.yaml --for bird --router 192.0.2.1`,
	}
	inputflags.OnCluster(c, func(c *cobra.Command, installConfig string) error {
		if address, err := netip.ParseAddr(router); err == nil {
			router = address.String()
		}
		if !slices.Contains(network.RouterKinds, kind) {
			return command.Usagef(c, "--for %q: expected %s", kind, strings.Join(network.RouterKinds, " or "))
		}
		cluster, err := a.quietCluster(installConfig, &f)
		if err != nil {
			return err
		}
		list, err := network.Routers(cluster, router)
		if err != nil {
			return err
		}
		if o == "json" {
			return a.printJSON(routerList{list})
		}
		for i := range list {
			text, err := list[i].Conf(kind)
			if err != nil {
				return err
			}
			if i > 0 {
				fmt.Fprintln(a.Out)
			}
			if _, err := a.Out.Write(text); err != nil {
				return err
			}
		}
		return nil
	})
	f.Add(c)
	o.Add(c, "text", "json")
	c.Flags().StringVar(&kind, "for", network.RouterKinds[0], "`program` of the router: "+strings.Join(network.RouterKinds, " or "))
	c.Flags().StringVar(&router, "router", "", "only the router with this `address`, or at this interface")
	command.Complete(c, "for", network.RouterKinds...)
	return c
}
