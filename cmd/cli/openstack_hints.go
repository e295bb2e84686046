package cli

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/cmd/inputflags"
	"github.com/vipgen/vipgen/internal/companion/openstack"
)

type openstackFlags struct {
	inputflags.Flags
	ports, vipPorts, floatingIPs []string
	network                      string
}

func (a *app) openstackCommand() *cobra.Command {
	var f openstackFlags
	var o command.Format
	c := &cobra.Command{
		Use:   "openstack-hints [install-config.yaml]",
		Short: "Print OpenStack CLI or Terraform for allowed address pairs",
		Long: `Print the Neutron settings that a cluster's VIPs need, as a script of the OpenStack CLI
or as Terraform: the allowed address pairs of the nodes' ports, ports that reserve the
addresses, and floating IPs. The script prints what it would do; with --apply it does
it. Names and IDs are those of 'openstack port list'.

Documentation: ` + command.Pages + `vips.md#openstack`,
		Example: `  vipgen openstack-hints install-config.yaml \
    --port master=demo-master-0 --port worker=demo-worker-0 > hints.sh
  bash hints.sh
  bash hints.sh --apply

  # A floating IP for applications
  vipgen openstack-hints install-config.yaml \
    --vip-port ingress=demo-ingress-port --floating-ip ingress=203.0.113.11

  # With ports for the VIPs, as Terraform
  vipgen openstack-hints install-config.yaml --network machines -o terraform \
    --port master=demo-master-0 --port worker=demo-worker-0 > vips.tf`,
	}
	inputflags.OnCluster(c, func(c *cobra.Command, installConfig string) error {
		plan, err := quietPlan(a, c, installConfig, &f.Flags, f.options, openstack.Load)
		if err != nil {
			return err
		}
		if o == "json" {
			return a.printJSON(plan)
		}
		print := plan.Script
		if o == "terraform" {
			print = plan.Terraform
		}
		text, err := print()
		if err != nil {
			return err
		}
		_, err = a.Out.Write(text)
		return err
	})
	f.Flags.Add(c)
	flags := c.Flags()
	flags.StringArrayVar(&f.ports, "port", nil, "port of a node, as `pool=name`; repeatable")
	flags.StringArrayVar(&f.vipPorts, "vip-port", nil, "port that reserves the addresses of VIPs, as `group=name`; groups are api, ingress, dns, api-NAME and ingress-NAME; repeatable")
	flags.StringArrayVar(&f.floatingIPs, "floating-ip", nil, "floating IP of VIPs, as `group=address`; repeatable (default: apiFloatingIP and ingressFloatingIP of the install-config)")
	flags.StringVar(&f.network, "network", "", "`name` of the network to create missing ports of VIPs in")
	o.Add(c, "script", "terraform", "json")
	return c
}

func (f *openstackFlags) options() (openstack.Options, error) {
	x := openstack.Options{Network: f.network}
	split := func(flag, s, form string) (string, string, error) {
		before, after, ok := strings.Cut(s, "=")
		if !ok {
			return "", "", fmt.Errorf("%s %s: expected %s", flag, problem.Quote(s), form)
		}
		return before, after, nil
	}
	var errs [3]error
	x.Ports, errs[0] = parseAll(f.ports, func(s string) (openstack.Port, error) {
		role, name, err := split("--port", s, "pool=name, such as master=demo-master-0")
		return openstack.Port{Role: role, Name: name}, err
	})
	x.VIPPorts, errs[1] = parseAll(f.vipPorts, func(s string) (openstack.VIPPort, error) {
		group, name, err := split("--vip-port", s, "group=name, such as api=demo-api-port")
		return openstack.VIPPort{Group: group, Name: name}, err
	})
	const form = "group=address, such as ingress=203.0.113.11"
	x.FloatingIPs, errs[2] = parseAll(f.floatingIPs, func(s string) (openstack.FloatingIP, error) {
		group, text, err := split("--floating-ip", s, form)
		if err != nil {
			return openstack.FloatingIP{}, err
		}
		address, err := parsed(netip.ParseAddr, text, "--floating-ip %s: expected %s", problem.Quote(s), form)
		return openstack.FloatingIP{Group: group, Address: address}, err
	})
	return x, cmp.Or(errs[:]...)
}
