package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/day2/adopt"
	"github.com/vipgen/vipgen/internal/day2/remove"
)

func (a *app) removeCommand() *cobra.Command {
	var f remove.Options
	var o command.Format
	c := &cobra.Command{
		Use:   "remove FILE|DIR...",
		Short: "Print and check the steps back to OpenShift's own keepalived",
		Long: `Print the steps by which a cluster that runs vipgen returns to OpenShift's own
keepalived, and check by an export how far it is. Nothing is written or deleted.

While a pool updates, nodes with and without vipgen have to be one group. So all nodes
first migrate to what OpenShift's keepalived has: VRRP settings, virtual router IDs,
members. Only then vipgen's MachineConfigs may be deleted: nodes that still run other
settings would not interoperate, and two nodes would hold the VIP (split brain).

` + reboots + `

Exit code 0: the MachineConfigs may be deleted now, or are deleted. 1: not yet, or there
is a split brain. 2: bad input, or the export does not have what is needed.

Documentation: ` + command.Pages + `adopt.md#remove`,
		Example: `  ` + adopt.ExportKinds + ` > live.yaml
  vipgen remove live.yaml

  # Of the example, with what vipgen adopt wrote
  vipgen remove examples/export adopted/rendered/machineconfigs

  # An external load balancer holds the VIPs by now
  vipgen remove live.yaml --external-lb

  # You looked: the machine worker-3 is off, and stays off
  vipgen remove live.yaml --i-checked worker-3-is-off`,
		Args: command.Args(1, -1),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.remove(args, f, o)
		},
	}
	o.Add(c, "text", "json")
	c.Flags().BoolVar(&f.ExternalLB, "external-lb", false, "an external load balancer holds the VIPs by now")
	c.Flags().StringSliceVar(&f.Off, "i-checked", nil, "`NODE-is-off` for each node whose machine is off, so that it need not report its settings. If it is on, two nodes may hold a VIP")
	return c
}

func (a *app) remove(names []string, f remove.Options, o command.Format) error {
	files, err := a.importFiles(names)
	if err != nil {
		return err
	}
	r, list := remove.Read(files, f)
	if err := list.Err(); err != nil {
		return err
	}
	a.Report(list)
	return found(show(a, o, removal{r, removeVerdict(r)}, removeText), !r.MayDelete || len(r.SplitBrain) > 0)
}

type removal struct {
	*remove.Removal
	Verdict string `json:"verdict"`
}

func removeText(out *printer, r removal) {
	for _, p := range r.Pools {
		if len(p.MachineConfigs) == 0 {
			out.line("pool %s: nothing of vipgen's", p.Name)
			continue
		}
		out.line("pool %s: %s; when it is deleted: %s, and %s of the operator's come back", p.Name, strings.Join(p.MachineConfigs, ", "), p.Effect, times(p.Returns, "file"))
	}
	for _, why := range r.SplitBrain {
		out.line("SPLIT BRAIN: %s", why)
		out.line("  apply vipgen's MachineConfigs to that pool again (oc apply -f rendered/machineconfigs), then continue with step 1")
	}
	for i, s := range r.Steps {
		out.WriteByte('\n')
		out.line("%d. %s: %s", i+1, s.Name, s.State)
		out.in(func() {
			for _, text := range s.Findings {
				out.line("- %s", text)
			}
			if len(s.Findings) == 0 {
				return
			}
			for _, text := range s.Do {
				out.line("  %s", text)
			}
		})
	}
	fmt.Fprintf(out, "\n%s\n", r.Verdict)
}

func removeVerdict(r *remove.Removal) string {
	gone, done := len(r.Steps[3].Findings) == 0, r.Steps[len(r.Steps)-1].State
	switch {
	case len(r.SplitBrain) > 0:
		return "Split brain: put the deleted MachineConfigs back before anything else."
	case !r.MayDelete:
		return "Do not delete vipgen's MachineConfigs yet."
	case !gone:
		return "vipgen's MachineConfigs may be deleted now."
	case done == remove.Waits:
		return "vipgen's MachineConfigs are deleted; wait until every node is updated."
	case done == remove.Now:
		return "vipgen's MachineConfigs are deleted; clean up."
	}
	return "No MachineConfig of vipgen's is left, and no node reports settings of its agent."
}
