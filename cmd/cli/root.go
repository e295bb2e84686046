// Package cli is the command tree of vipgen: flags, reading and writing of
// files, and printing. What is rendered is decided in package render.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/input"
)

// Run executes a command line and returns its exit code.
func Run(args []string, in io.Reader, out, errOut io.Writer) int {
	args = planned(args)
	a := &app{Reader: input.Reader{In: in}, out: out, err: errOut, args: args}
	return a.exit(command.Execute(context.Background(), a.root(), args))
}

// planned adds the command that migrate and external-lb run for a file alone.
func planned(args []string) []string {
	if len(args) > 1 && (args[0] == "migrate" || args[0] == "external-lb") && input.IsFile(args[1]) {
		return slices.Insert(slices.Clone(args), 1, "plan")
	}
	return args
}

// Command is the command tree, for man pages.
func Command() *cobra.Command { return (&app{}).root() }

// app carries the streams and what the commands share.
type app struct {
	// writes says that the command would have written something.
	writes bool
	// quiet leaves out what was written.
	quiet    bool
	out, err io.Writer
	// args are the command line.
	args []string
	// What is read, standard input among it.
	input.Reader
}

// pages is where the documentation is, for help: a program comes without it.
const pages = "https://github.com/vipgen/vipgen/blob/main/docs/"

// reboots stands in help next to each `oc apply` of MachineConfigs.
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

Documentation: ` + pages + `commands.md`,
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
	root.AddCommand(add("running", "Look after running clusters:",
		a.importCommand(), a.adoptCommand(), a.migrateCommand(), a.removeCommand(), a.statusCommand(), a.doctorCommand(), a.metallbCommand(), a.checkEndpointCommand(), a.externalCommand(), a.openstackCommand(), a.portsCommand())...)
	root.PersistentFlags().BoolVarP(&a.quiet, "quiet", "q", false, "do not print what was written; problems are printed")
	command.AddVersion(root)
	// Before the commands that cobra adds, which keep the streams that they find.
	root.SetIn(a.In)
	root.SetOut(a.out)
	root.SetErr(a.err)
	command.AddHelp(root)
	command.AddCompletion(root)
	return root
}

// exit prints what is left to print and turns an error into an exit code.
func (a *app) exit(err error) int {
	var list problem.List
	var use *command.UsageError
	var mistake inputError
	var code command.Code
	switch {
	case err == nil:
		return command.OK
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &list):
		a.report(list)
		return exitOf(list)
	case errors.As(err, &use), errors.As(err, &mistake):
		a.complain(err)
		return command.Input
	default:
		a.complain(err)
		return command.Failed
	}
}

// inputError is an error that who gave the command is to blame for, such as
// that of lab/control, which is not everywhere: labs are for Linux.
type inputError interface {
	error
	Input()
}

// exitOf is the exit code of problems: that of what could not be read, where there is
// such a file, as its contents may be all right.
func exitOf(list problem.List) int {
	for _, p := range list.Errors() {
		if p.Code == problem.Unreadable {
			return command.Failed
		}
	}
	return command.Input
}

// complain prints an error that is no list of problems.
func (a *app) complain(err error) {
	text := strings.TrimSpace(command.Safe(err.Error()))
	fmt.Fprintf(a.err, "%s %s\n", command.Colours(a.err).Paint(command.Red, "vipgen:"), text)
}

// report prints problems, errors first in the order of the files, and what
// comes of them.
func (a *app) report(list problem.List) {
	a.printProblems(list)
	if n := len(list.Errors()); n > 0 {
		outcome := ""
		if a.writes {
			outcome = "; nothing was written"
		}
		a.complain(errors.New(plural(n, "problem") + outcome))
	}
}

// printProblems prints each problem on a line, and a hint of several lines below it.
func (a *app) printProblems(list problem.List) {
	colours := command.Colours(a.err)
	for _, p := range list {
		var steps []string
		if strings.Contains(p.Hint, "\n") {
			steps, p.Hint = strings.Split(p.Hint, "\n"), ""
		}
		line, colour := command.SafeLine(p.String()), command.Red
		if p.Severity == problem.Warning {
			colour = command.Yellow
		}
		before, after, _ := strings.Cut(line, string(p.Severity)+": ")
		fmt.Fprintln(a.err, before+colours.Paint(colour, string(p.Severity)+":")+" "+after)
		for _, s := range steps {
			fmt.Fprintln(a.err, "  "+command.SafeLine(s))
		}
	}
}

// printJSON prints a value to standard output.
func (a *app) printJSON(v any) error { return command.JSON(a.out, v) }
