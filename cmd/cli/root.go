// Package cli is the command tree of vipgen: flags, reading and writing of
// files, and printing. What is rendered is decided in package render.
package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/lab/control"
)

// Exit codes.
const (
	exitOK      = 0
	exitFinding = 1 // drift, or another finding that the user asked for
	exitInput   = 2 // bad input or usage
	exitFailed  = 3 // could not read, write or run
)

// Run executes a command line and returns its exit code.
func Run(args []string, in io.Reader, out, errOut io.Writer) int {
	a := &app{in: in, out: out, err: errOut, args: args}
	root := a.root()
	root.SetArgs(args)
	return a.exit(root.Execute())
}

// app carries the streams and what the commands share.
type app struct {
	// writes says that the command would have written something.
	writes   bool
	in       io.Reader
	out, err io.Writer
	// inRead says that standard input has been read.
	inRead bool
	// args are the command line.
	args []string
	// defaults are those of the fleets that clusters belong to.
	defaults defaultsFinder
	// companions are the other files of clusters that several objects describe.
	companions companions
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "vipgen",
		Short: "Virtual IPs, API load balancing and DNS for on-premises clusters",
		Long: `vipgen renders what the nodes of an on-premises Kubernetes or OpenShift cluster
need to carry their own virtual IPs, API load balancer and DNS: MachineConfigs,
Ignition configs and static pods with keepalived, HAProxy, CoreDNS and mDNS. It
reads the cluster's install-config.yaml, works offline, and gives the same bytes
for the same input.

Exit codes: 0 done; 1 drift or another finding; 2 bad input or usage, with every
problem reported; 3 could not read, write or run.`,
		Example: `  # MachineConfigs and manifests of a cluster, to read or to apply
  vipgen render install-config.yaml
  vipgen render install-config.yaml | oc apply -f -

  # What keepalived on one node will run
  vipgen preview install-config.yaml --node master-0 --role master \
    --interface ens192 --address 192.168.1.10/24 --peer master-1=192.168.1.11`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage(c, err)
	})
	add := func(id, title string, commands ...*cobra.Command) {
		root.AddGroup(&cobra.Group{ID: id, Title: title})
		for _, c := range commands {
			c.GroupID = id
		}
		root.AddCommand(commands...)
	}
	add("render", "Render clusters:",
		a.initCommand(), a.renderCommand(), a.diffCommand(), a.validateCommand(), a.vrIDsCommand(), a.imagesCommand(), a.schemaCommand(), a.fnCommand())
	add("look", "See what nodes will do:",
		a.previewCommand(), a.explainCommand(), a.verifyCommand(), a.inspectCommand(), a.labCommand())
	add("running", "Look after running clusters:",
		a.importCommand(), a.migrateCommand(), a.metallbCommand(), a.checkEndpointCommand(), a.externalCommand(), a.openstackCommand(), a.portsCommand())
	root.AddCommand(a.versionCommand())
	// Before the commands that cobra adds, which keep the streams that they find.
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	return root
}

// usageError is a mistake on the command line.
type usageError struct {
	command string
	err     error
}

func usage(c *cobra.Command, err error) error { return &usageError{c.CommandPath(), err} }

func (e *usageError) Error() string {
	return fmt.Sprintf("%v\nSee '%s --help'.", e.err, e.command)
}

// finding ends a command that did its work and found something.
var errFinding = errors.New("")

// errReported ends a command whose report is already printed.
var errReported = errors.New("")

// exitCode ends a command with the exit code of a program that it ran.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// exit prints what is left to print and turns an error into an exit code.
func (a *app) exit(err error) int {
	var list problem.List
	var use *usageError
	var mistake *control.InputError
	var code exitCode
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return int(code)
	case errors.Is(err, errFinding):
		return exitFinding
	case errors.Is(err, errReported):
		return exitInput
	case errors.As(err, &list):
		a.report(list)
		return exitInput
	case errors.As(err, &use), errors.As(err, &mistake), isCobraUsage(err):
		fmt.Fprintf(a.err, "vipgen: %s\n", safe(strings.TrimSpace(err.Error())))
		return exitInput
	default:
		fmt.Fprintf(a.err, "vipgen: %s\n", safe(strings.TrimSpace(err.Error())))
		return exitFailed
	}
}

// args wraps a check of arguments so that its complaint is one about usage.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, a []string) error {
		if err := check(c, a); err != nil {
			return usage(c, err)
		}
		return nil
	}
}

// isCobraUsage: unknown commands and flags that exclude each other are the
// mistakes that cobra reports without a hook.
func isCobraUsage(err error) bool {
	return strings.HasPrefix(err.Error(), "unknown command") || strings.HasPrefix(err.Error(), "if any flags in the group")
}

// report prints problems, errors first in the order of the files, and what
// comes of them.
func (a *app) report(list problem.List) {
	for _, p := range list {
		fmt.Fprintln(a.err, safeLine(p.String()))
	}
	if n := len(list.Errors()); n > 0 {
		word := "problems"
		if n == 1 {
			word = "problem"
		}
		outcome := ""
		if a.writes {
			outcome = "; nothing was written"
		}
		fmt.Fprintf(a.err, "vipgen: %d %s%s\n", n, word, outcome)
	}
}
