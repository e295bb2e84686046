package agentcli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/agent/fabric"
	"github.com/vipgen/vipgen/agent/nodeip"
	"github.com/vipgen/vipgen/cmd/command"
)

func (a *app) fabricCheckCommand() *cobra.Command {
	var o command.Format
	var peer string
	var addresses []string
	var options fabric.Options
	var listen bool
	c := &cobra.Command{
		Use:   "fabric-check --peer ADDRESS --address UNUSED",
		Short: "Check whether the network lets an address move between two nodes",
		Long: `Check, before VIPs depend on it, whether the network lets an address move between two
nodes of a subnet, and how fast: gratuitous ARP and neighbour advertisements, VRRP by
multicast and unicast, ARP limits and suppression, proxy ARP, duplicate detection.

Run it with --listen on one node, then without on the other one; --peer is the other
node. It takes root, an address of the subnet that is not in use (one per family), and
no daemon. Each node has the address for some seconds; at the end none has it. It sends
small packets to the link and to the peer only, for at most three minutes.

Exit code 1: a check failed.`,
		Example: `  vipgen-agent fabric-check --listen --peer 192.0.2.21 --address 192.0.2.250
  vipgen-agent fabric-check --peer 192.0.2.22 --address 192.0.2.250
  vipgen-agent fabric-check --peer 192.0.2.22 --address 192.0.2.250,2001:db8::250 -o json`,
		Args: command.Args(0, 0),
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if peer == "" || len(addresses) == 0 {
				return command.Usagef(c, "missing: --peer ADDRESS --address UNUSED")
			}
			if options.Peer, err = netip.ParseAddr(peer); err != nil {
				return command.Usagef(c, "--peer %q: expected an IP address", peer)
			}
			options.Peer = options.Peer.Unmap()
			for _, text := range addresses {
				address, err := netip.ParseAddr(text)
				if err != nil || address.Zone() != "" || address.Is4In6() {
					return command.Usagef(c, "--address %q: expected an IP address", text)
				}
				options.Addresses = append(options.Addresses, address)
			}
			if options.Port < 1 || options.Port > 65535 {
				return command.Usagef(c, "--port %d: expected 1 to 65535", options.Port)
			}
			if options.VIPs, err = a.knownVIPs(); err != nil {
				return err
			}
			if err := options.Validate(); err != nil {
				return &inputError{err}
			}
			options.Log = a.log
			if listen {
				return fabric.Serve(c.Context(), options)
			}
			return a.checkFabric(c.Context(), options, o)
		},
	}
	o.Add(c, "text", "json")
	c.Flags().StringVar(&peer, "peer", "", "`address` of the other node")
	c.Flags().StringSliceVar(&addresses, "address", nil, "unused `addresses` of the subnet, one per family")
	c.Flags().IntVar(&options.Port, "port", fabric.DefaultPort, "TCP `port` between the nodes")
	c.Flags().BoolVar(&listen, "listen", false, "take part in the check of the peer")
	return c
}

// knownVIPs returns the VIPs of cluster.yaml, none on a node without it.
func (a *app) knownVIPs() ([]netip.Addr, error) {
	spec, err := a.cluster()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return nodeip.VIPs(spec), nil
}

func (a *app) checkFabric(ctx context.Context, options fabric.Options, o command.Format) error {
	report, err := fabric.Run(ctx, options)
	if err != nil {
		return err
	}
	if o == "json" {
		err = a.printJSON(report)
	} else {
		err = a.printFabric(report)
	}
	if err == nil && report.Failed() {
		return command.ErrFinding
	}
	return err
}

func (a *app) printFabric(report *fabric.Report) error {
	w := command.Table(a.out)
	fmt.Fprintln(w, "CHECK\tADDRESS\tFROM\tTO\tRESULT\tFIGURE")
	for _, c := range report.Checks {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", c.Name, c.Address, c.From, orDash(c.To), c.Result, c.Figure)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, c := range report.Checks {
		if c.Result != fabric.Pass {
			fmt.Fprintf(a.out, "\n%s: %s, from %s to %s\n  cause  %s\n  next   %s\n", c.Result, c.Name, c.From, orDash(c.To), c.Cause, c.Next)
		}
	}
	return nil
}

func orDash(a netip.Addr) string {
	if !a.IsValid() {
		return "-"
	}
	return a.String()
}
