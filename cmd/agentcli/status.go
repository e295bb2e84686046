package agentcli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
)

func (a *app) statusCommand() *cobra.Command {
	var o command.Format
	c := &cobra.Command{
		Use:   "status",
		Short: "Print the state of the agent's jobs on this node",
		Long: `Print which VIPs this node holds and why (its priority, term by term), the peers, the
backends, the redirect, the mDNS names published and discovered, and the last reloads
and refused configurations. Jobs that do not run are left out.`,
		Example: `  vipgen-agent status
  vipgen-agent status -o json`,
		Args: command.Args(0, 0),
		RunE: func(*cobra.Command, []string) error { return a.status(o == "json") },
	}
	o.Add(c, "text", "json")
	return c
}

// status prints what the jobs of this node have published: for JSON those that run, by
// name, else a line for every fact, a job after the other.
func (a *app) status(asJSON bool) error {
	dir, err := state.Open(a.below(v1alpha1.RunDir))
	if err != nil {
		return err
	}
	defer dir.Close()
	published := map[string]any{}
	w := command.Table(a.out)
	for _, k := range jobs {
		v, rows, err := k.Summary(dir)
		if err != nil {
			return err
		}
		if v != nil {
			published[k.Name] = v
		}
		for _, row := range rows {
			fmt.Fprintln(w, strings.Join(row, "\t"))
		}
	}
	if asJSON {
		return a.printJSON(published)
	}
	return w.Flush()
}
