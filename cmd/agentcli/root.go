// Package agentcli is the command tree of vipgen-agent: flags, logging and
// printing. What is done on the node is in the packages below agent.
package agentcli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// Exit codes, as those of vipgen.
const (
	exitOK      = 0
	exitFinding = 1 // asked about something that is not as it should be
	exitInput   = 2 // bad input or usage
	exitFailed  = 3 // could not read, write or run
)

// Run executes a command line until it is done or ctx is, and returns its exit
// code. Answers go to out, logs and complaints to errOut.
func Run(ctx context.Context, args []string, out, errOut io.Writer) int {
	a := &app{out: out, err: errOut}
	a.log = slog.New(slog.NewTextHandler(errOut, &slog.HandlerOptions{Level: &a.level}))
	root := a.command()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errOut)
	return a.exit(root.ExecuteContext(ctx))
}

// app carries the streams and what the commands share.
type app struct {
	out, err io.Writer
	log      *slog.Logger
	level    slog.LevelVar
	// root is where the host's file system is.
	root string
	// clusterConfig is the path of cluster.yaml on the host.
	clusterConfig string
}

func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "vipgen-agent",
		Short: "What can only be decided on the node, for vipgen's pods and units",
		Long: `vipgen-agent runs on every node of a cluster, from the units and pods that vipgen
rendered. It reads the facts of the cluster from
` + v1alpha1.ClusterConfigPath + `, looks at its own node,
and decides.

Exit codes: 0 done; 1 asked about something that is not as it should be; 2 bad
input or usage; 3 could not read, write or run.`,
		Example: `  # The address by which kubelet will know this node, and why
  vipgen-agent node-ip show -o json`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.clusterConfig, "cluster-config", v1alpha1.ClusterConfigPath, "facts of the cluster, below --root")
	flags.StringVar(&a.root, "root", "/", "where the host's file system is, when running in a container")
	flags.TextVar(&a.level, "log-level", &a.level, "least level to log: DEBUG, INFO, WARN, ERROR")
	root.SetFlagErrorFunc(usage)
	root.AddCommand(a.installCommand(), a.corednsCommand(), a.firewallCommand(), a.haproxyCommand(), a.keepalivedCommand(), a.logLevelCommand(), a.mdnsCommand(), a.nodeIPCommand(), a.probeCommand(), a.renderCommand(), a.resolvConfCommand(), a.statusCommand(), a.versionCommand(), a.vrrpCommand())
	root.InitDefaultHelpCmd()
	root.CompletionOptions.DisableDefaultCmd = true // nodes have no shell to complete in
	return root
}

// cluster reads the facts of the cluster.
func (a *app) cluster() (*v1alpha1.ClusterConfigSpec, error) {
	c, err := a.clusterFile()
	if err != nil {
		return nil, err
	}
	return &c.Spec, nil
}

// clusterFile reads the facts of the cluster with its name.
func (a *app) clusterFile() (*v1alpha1.ClusterConfig, error) {
	path := filepath.Join(a.root, a.clusterConfig)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c, err := v1alpha1.LoadClusterConfig(path, data)
	if err != nil {
		return nil, &inputError{err}
	}
	return c, nil
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

// inputError is a file that is not as it should be.
type inputError struct{ error }

func (e *inputError) Unwrap() error { return e.error }

// errFinding ends a command that did its work, found something, and said so.
var errFinding = errors.New("")

// exit says what is left to say and turns an error into an exit code.
func (a *app) exit(err error) int {
	var use *usageError
	var input *inputError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errFinding):
		return exitFinding
	case errors.As(err, &use), strings.HasPrefix(err.Error(), "unknown command"): // for which cobra has no hook
		fmt.Fprintf(a.err, "vipgen-agent: %v\n", err)
		return exitInput
	case errors.As(err, &input):
		a.logInput(input)
		return exitInput
	default:
		a.log.Error("ended", "error", err)
		return exitFailed
	}
}

// logInput logs every problem of a file on a line of its own.
func (a *app) logInput(err error) {
	var list problem.List
	if !errors.As(err, &list) {
		a.log.Error("bad input", "error", err)
	}
	for _, p := range list {
		a.log.Error("bad input", "problem", p.String())
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

// group makes a command that only has others below it.
func group(c *cobra.Command, children ...*cobra.Command) *cobra.Command {
	c.AddCommand(children...)
	c.Args = args(cobra.NoArgs)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return usage(c, errors.New("expected a command"))
	}
	return c
}

// formatFlag is -o.
type formatFlag struct{ value string }

func (f *formatFlag) add(c *cobra.Command) {
	c.Flags().VarP(f, "output", "o", "format of the output: text or json")
}

func (f *formatFlag) String() string { return f.value }
func (f *formatFlag) Type() string   { return "format" }
func (f *formatFlag) Set(s string) error {
	if s != "text" && s != "json" {
		return errors.New("expected text or json")
	}
	f.value = s
	return nil
}

func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
