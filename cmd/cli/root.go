// Package cli is the command tree of vipgen: flags, reading and writing of files, and printing.
// Package render decides what is rendered.
package cli

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/input"
	"github.com/vipgen/vipgen/render"
)

// Run executes a command line and returns its exit code.
func Run(args []string, in io.Reader, out, errOut io.Writer) int {
	args = withPlanCommand(args)
	a := &app{Reader: input.Reader{In: in}, Console: command.Console{Out: out, Err: errOut}, completing: command.Completing(args)}
	root := a.root()
	if program, rest := plugin(root, args); program != "" {
		code, err := execPlugin(program, rest)
		if err != nil {
			return a.Exit(fmt.Errorf("running %s: %w", program, err))
		}
		return code
	}
	return a.Exit(command.Execute(context.Background(), root, args))
}

// withPlanCommand inserts the subcommand that migrate and external-lb default to.
func withPlanCommand(args []string) []string {
	if len(args) > 1 && (args[0] == "migrate" || args[0] == "external-lb") && input.IsFile(args[1]) {
		return slices.Insert(slices.Clone(args), 1, "plan")
	}
	return args
}

// Command returns the command tree, for man pages.
func Command() *cobra.Command { return (&app{}).root() }

// app holds the streams and what the commands share.
type app struct {
	// quiet suppresses the summary of written files.
	quiet bool
	// completing is set if a shell asks for completions.
	completing bool
	command.Console
	// Reader reads the input, standard input included.
	input.Reader
	// running reads the cluster of migrate; nil where files describe it.
	running func() (*render.Cluster, error)
}

// reboots is the help next to each `oc apply` of MachineConfigs.
const reboots = `Applying MachineConfigs drains and reboots the nodes of a pool one by one, unless a
node disruption policy covers the change. Run 'vipgen diff' first: it names the
pools that reboot, and why.`

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "vipgen",
		Short: "Virtual IPs, API load balancing and DNS for on-premises clusters",
		Long: `vipgen renders what the nodes of an on-premises Kubernetes or OpenShift cluster
need to carry their own virtual IPs, API load balancer and DNS: MachineConfigs,
Ignition configs and static pods with keepalived, HAProxy, CoreDNS and mDNS. It
reads the cluster's install-config.yaml, works offline, and renders the same bytes
from the same input.

` + reboots + `

Exit codes: 0 done; 1 drift or another finding; 2 bad input or usage, with every
problem reported; 3 could not read, write or run; 4 'vipgen diff' or
'vipgen adopt' found files of vipgen that another MachineConfig replaces.

A command that is none of these is run by a program vipgen-COMMAND next to vipgen or
in PATH, as lab is.

Documentation: ` + command.Pages + `commands.md`,
		Example: `  # Check the input and print the MachineConfigs and manifests of a cluster
  vipgen validate install-config.yaml
  vipgen render install-config.yaml

  # What changes on which nodes of a running cluster, then apply it
  vipgen render install-config.yaml --dir rendered
  oc get machineconfig -o yaml | vipgen diff - rendered
  oc apply -f rendered/machineconfigs -f rendered/manifests

  # Preview exactly what keepalived on one node will run
  vipgen preview install-config.yaml --node master-0 --role master \
    --interface ens192 --address 192.168.1.10/24 --peer master-1=192.168.1.11`,
	}
	add := func(id, title string, commands ...*cobra.Command) []*cobra.Command {
		root.AddGroup(&cobra.Group{ID: id, Title: title})
		for _, c := range commands {
			c.GroupID = id
		}
		return commands
	}
	command.Setup(root)
	command.Group(root)
	root.AddCommand(add("render", "Render clusters:",
		a.initCommand(), a.renderCommand(), a.diffCommand(), a.validateCommand(), a.vrIDsCommand(), a.imagesCommand(), a.schemaCommand(), a.fnCommand())...)
	root.AddCommand(add("look", "See what nodes will do:",
		a.previewCommand(), a.explainCommand(), a.verifyCommand(), a.inspectCommand(), a.labCommand())...)
	root.AddCommand(add("running", "Operate running clusters:",
		a.importCommand(), a.adoptCommand(), a.migrateCommand(), a.removeCommand(), a.statusCommand(), a.doctorCommand(), a.bgpCommand(), a.metallbCommand(), a.checkEndpointCommand(), a.externalCommand(), a.openstackCommand(), a.portsCommand())...)
	root.PersistentFlags().BoolVarP(&a.quiet, "quiet", "q", false, "do not print what was written; problems are printed")
	command.AddVersion(root)
	// Before the commands that cobra adds, which keep the current streams.
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	command.AddHelp(root)
	command.AddCompletion(root)
	return root
}
