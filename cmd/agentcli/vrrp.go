package agentcli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/vrrp/listener"
)

func (a *app) vrrpCommand() *cobra.Command {
	return command.Group(&cobra.Command{
		Use:     "vrrp",
		Short:   "Observe VRRP on the network",
		Example: "  vipgen-agent vrrp scan",
	}, a.vrrpScanCommand())
}

func (a *app) vrrpScanCommand() *cobra.Command {
	var o command.Format
	var interfaces []string
	var duration time.Duration
	c := &cobra.Command{
		Use:   "scan",
		Short: "Listen for VRRP advertisements and print the virtual router IDs in use",
		Long: `Listen for VRRP advertisements, version 2 and 3, over IPv4 and IPv6, and print the
routers that send them: by multicast on the links of this host, or by unicast to this
host. It sends nothing but multicast joins (IGMP, MLD).

'vipgen vr-ids --scan' reads the output of -o json, so that no cluster gets an ID that
a router or another cluster has. VRRPv2 allows intervals of up to 255s; the default
duration sees all routers with the usual interval of 1s.`,
		Example: `  vipgen-agent vrrp scan
  vipgen-agent vrrp scan --interface ens192 --duration 30s -o json > scan.json`,
		Args: command.Args(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			if duration <= 0 {
				return command.Usagef(c, "--duration %v: expected a duration, such as 10s", duration)
			}
			return a.scanVRRP(c.Context(), interfaces, duration, o)
		},
	}
	o.Add(c, "text", "json")
	c.Flags().StringSliceVar(&interfaces, "interface", nil, "`interfaces` to listen on (default: all that are up)")
	c.Flags().DurationVar(&duration, "duration", 10*time.Second, "`duration` of the scan")
	return c
}

// vrrpScan is the result of a scan, for 'vipgen vr-ids --scan'.
type vrrpScan struct {
	Interfaces []string          `json:"interfaces"`
	Duration   string            `json:"duration"`
	Routers    []listener.Router `json:"routers"`
}

func (a *app) scanVRRP(ctx context.Context, interfaces []string, duration time.Duration, o command.Format) error {
	s, err := listener.Open(interfaces...)
	if err != nil {
		return err
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	if err := s.Listen(ctx); err != nil {
		return err
	}
	scan := vrrpScan{s.Interfaces, duration.String(), s.Routers()}
	if o == "json" {
		return a.printJSON(scan)
	}
	w := command.Table(a.out)
	fmt.Fprintln(w, "ID\tFAMILY\tVRRP\tPRIORITY\tEVERY\tSOURCE\tINTERFACE\tSENT BY\tADDRESSES")
	for _, r := range scan.Routers {
		fmt.Fprintf(w, "%d\t%s\t%d\t%d\t%v\t%s\t%s\t%s\t%s\n", r.ID, r.Family, r.Version, r.Priority,
			time.Duration(r.Interval)*time.Millisecond, r.Source, r.Interface, r.Mode, lists.Join(r.Addresses, " "))
	}
	return w.Flush()
}
