package agentcli

import (
	"fmt"
	"os"
	"strings"
	"time"

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
and refused configurations. A job that does not run is shown as such; JSON leaves it out.

Exit code 1: no job runs on this node. With -o json, check the output instead.

'vipgen status' reads the JSON of all nodes and shows the cluster.`,
		Example: `  vipgen-agent status
  vipgen-agent status -o json`,
		Args: command.Args(0, 0),
		RunE: func(*cobra.Command, []string) error { return a.status(o == "json") },
	}
	o.Add(c, "text", "json")
	return c
}

// thisNode returns the name of the node: on the host, outside of a pod, the host name.
func thisNode() string {
	if name, err := nodeName(); err == nil {
		return name
	}
	name, _ := os.Hostname() // without a node name, readers use the file name
	return name
}

// status prints the published states of this node's jobs: for JSON a state.Report, else a
// table, job after job.
func (a *app) status(asJSON bool) error {
	dir, err := state.Open(a.below(v1alpha1.RunDir))
	if err != nil {
		return err
	}
	defer dir.Close()
	// In the form of state.Report, with jobs by name.
	published := map[string]any{"node": thisNode(), "version": command.Version(), "time": time.Now().UTC().Truncate(time.Second)}
	running := false
	w := command.Table(a.out)
	for _, k := range jobs {
		v, rows, err := k.Summary(dir)
		if err != nil {
			return err
		}
		if v != nil {
			published[k.Name], running = v, true
		}
		for _, row := range rows {
			fmt.Fprintln(w, strings.Join(row, "\t"))
		}
	}
	if asJSON {
		return command.Object(a.out, state.ReportKind, published)
	}
	if err := w.Flush(); err != nil || running {
		return err
	}
	return command.Code(command.Finding)
}
