package agentcli

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	vrrp "github.com/vipgen/vipgen/internal/vrrp/listener"
)

func (a *app) vrrpCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:     "vrrp",
		Short:   "Look at VRRP on the wire",
		Example: "  vipgen-agent vrrp scan",
	}, a.vrrpScanCommand())
}

func (a *app) vrrpScanCommand() *cobra.Command {
	var o formatFlag
	var interfaces []string
	var duration time.Duration
	c := &cobra.Command{
		Use:   "scan",
		Short: "Listen for VRRP adverts and print the virtual router IDs in use",
		Long: `Listen for VRRP adverts, version 2 and 3, over IPv4 and IPv6, and print who sends
them: all that are multicast on the links of this host, and those that are sent to it
by its address. It sends nothing but the joining of the multicast groups.

'vipgen vr-ids --scan' reads the output of -o json, so that no cluster gets an ID that
a router or another cluster has. Adverts come as often as once in 255 seconds with
VRRPv2; the default time sees all of those who keep to the usual second.`,
		Example: `  vipgen-agent vrrp scan
  vipgen-agent vrrp scan --interface ens192 --duration 30s -o json > scan.json`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if duration <= 0 {
				return usage(c, fmt.Errorf("--duration %v: expected a time, such as 10s", duration))
			}
			return a.scanVRRP(c.Context(), interfaces, duration, o)
		},
	}
	o.add(c)
	c.Flags().StringSliceVar(&interfaces, "interface", nil, "interfaces to listen on (default: all that are up)")
	c.Flags().DurationVar(&duration, "duration", 10*time.Second, "for how long to listen")
	return c
}

// vrrpScan is what was seen, for 'vipgen vr-ids --scan'.
type vrrpScan struct {
	Interfaces []string      `json:"interfaces"`
	Duration   string        `json:"duration"`
	Routers    []vrrp.Router `json:"routers"`
}

func (a *app) scanVRRP(ctx context.Context, interfaces []string, duration time.Duration, o formatFlag) error {
	s, err := vrrp.Open(interfaces...)
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
	if o.value == "json" {
		return a.printJSON(scan)
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tFAMILY\tVRRP\tPRIORITY\tEVERY\tSOURCE\tINTERFACE\tSENT BY\tADDRESSES")
	for _, r := range scan.Routers {
		var held []string
		for _, addr := range r.Addresses {
			held = append(held, addr.String())
		}
		fmt.Fprintf(w, "%d\t%s\t%d\t%d\t%v\t%s\t%s\t%s\t%s\n", r.ID, r.Family, r.Version, r.Priority,
			time.Duration(r.Interval)*time.Millisecond, r.Source, r.Interface, r.Mode, strings.Join(held, " "))
	}
	return w.Flush()
}
