// Package agentcli is the command tree of vipgen-agent: flags, logging and printing. The
// work on the node is in the packages below agent.
package agentcli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
)

// Run executes a command line until it or ctx ends, and returns its exit code. Results go
// to out, logs and errors to errOut.
func Run(ctx context.Context, args []string, out, errOut io.Writer) int {
	a := &app{out: out, err: errOut}
	_ = (*logFormat)(a).Set(logging.Formats[0])
	root := a.command()
	root.SetOut(out)
	root.SetErr(errOut)
	return a.exit(command.Execute(ctx, root, args))
}

// Command returns the command tree, for man pages.
func Command() *cobra.Command { return (&app{}).command() }

// app holds the streams and the state shared by commands.
type app struct {
	out, err io.Writer
	log      *slog.Logger
	format   string // of the log
	level    slog.LevelVar
	// root is the root of the host's file system.
	root string
	// clusterConfig is the path of cluster.yaml on the host.
	clusterConfig string
}

func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "vipgen-agent",
		Short: "Node agent for keepalived, HAProxy, CoreDNS and mDNS",
		Long: `vipgen-agent runs on every node of a cluster, in the units and pods that vipgen
rendered. It reads the facts of the cluster from
` + v1alpha1.ClusterConfigPath + `,
discovers those of its node, and runs the daemons with the configuration that follows.

Exit codes: 0 done; 1 a finding, such as a failed probe; 2 bad input or usage;
3 could not read, write or run.`,
		Example: `  # VIPs, priorities, backends and names of this node
  vipgen-agent status

  # The node's address for kubelet, and why
  vipgen-agent node-ip show -o json`,
	}
	command.Setup(root)
	commands := []*cobra.Command{a.eventsCommand(), a.fabricCheckCommand(), a.installCommand(), a.logLevelCommand(), a.nodeIPCommand(), a.probeCommand(), a.renderCommand(), a.resolvConfCommand(), a.statusCommand(), a.vrrpCommand()}
	for _, k := range jobs {
		commands = append(commands, a.jobCommand(k))
	}
	command.Group(root, commands...)
	command.AddVersion(root)
	flags := root.PersistentFlags()
	flags.StringVar(&a.clusterConfig, "cluster-config", v1alpha1.ClusterConfigPath, "`file` with the facts of the cluster, below --root")
	flags.StringVar(&a.root, "root", cmp.Or(os.Getenv(v1alpha1.RootVariable), "/"), "`directory` of the host's file system, for containers")
	flags.Var((*logFormat)(a), "log-format", "`format` of the log: "+strings.Join(logging.Formats, ", "))
	command.Complete(root, "log-format", logging.Formats...)
	flags.TextVar(&a.level, "log-level", &a.level, "lowest `level` to log: DEBUG, INFO, WARN, ERROR")
	command.AddHelp(root)
	root.CompletionOptions.DisableDefaultCmd = true // nodes have no shell to complete in
	return root
}

// logFormat is the value of --log-format: setting it replaces the logger of app.
type logFormat app

func (f *logFormat) String() string { return cmp.Or(f.format, logging.Formats[0]) }

func (*logFormat) Type() string { return "format" }

func (f *logFormat) Set(format string) error {
	if !slices.Contains(logging.Formats, format) {
		return fmt.Errorf("expected %s", command.Or(logging.Formats))
	}
	f.format, f.log = format, logging.New(f.err, format, &f.level)
	return nil
}

func (a *app) cluster() (*v1alpha1.ClusterConfigSpec, error) {
	c, err := a.clusterFile()
	if err != nil {
		return nil, err
	}
	return &c.Spec, nil
}

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

// inputError is an invalid file.
type inputError struct{ error }

func (e *inputError) Unwrap() error { return e.error }

// exit logs an error that is not printed yet, and returns its exit code.
func (a *app) exit(err error) int {
	var code command.Code
	var use *command.UsageError
	var input *inputError
	switch {
	case err == nil:
		return command.OK
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &use):
		fmt.Fprintf(a.err, "vipgen-agent: %s\n", command.Safe(err.Error()))
		return command.Input
	case errors.As(err, &input):
		a.logInput(input)
		return command.Input
	default:
		a.log.Error("ended", "error", err)
		return command.Failed
	}
}

// logInput logs every problem of a file on its own line.
func (a *app) logInput(err error) {
	var list problem.List
	if !errors.As(err, &list) {
		a.log.Error("bad input", "error", err)
	}
	for _, p := range list {
		a.log.Error("bad input", "problem", p.String())
	}
}
