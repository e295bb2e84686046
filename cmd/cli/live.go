package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/events"
	"github.com/vipgen/vipgen/internal/input"
	"github.com/vipgen/vipgen/render"
)

// RunLive executes a command line of kubectl-vipgen and returns its exit code.
func RunLive(args []string, in io.Reader, out, errOut io.Writer) int {
	l := newLive(in, out, errOut)
	l.completing = command.Completing(args)
	return l.Exit(command.Execute(context.Background(), l.root(), args))
}

// LiveCommand returns the command tree of kubectl-vipgen, for man pages.
func LiveCommand() *cobra.Command { return newLive(nil, nil, nil).root() }

// liveApp runs commands of vipgen on objects of a running cluster.
type liveApp struct {
	*app
	client kubeClient
	// flags holds the values of kubectlFlags, by name.
	flags     map[string]*string
	namespace string
	keep      string
	timeout   time.Duration
}

func newLive(in io.Reader, out, errOut io.Writer) *liveApp {
	a := &app{Reader: input.Reader{In: in}, Console: command.Console{Out: out, Err: errOut}}
	l := &liveApp{app: a, client: kubeClient{in: in, err: errOut}, flags: map[string]*string{}}
	a.running = l.cluster
	return l
}

var kubectlFlags = [][2]string{
	{"as", "`user` to impersonate"},
	{"cluster", "`name` of the cluster in the kubeconfig"},
	{"context", "`name` of the context in the kubeconfig"},
	{"kubeconfig", "`file` to read instead of the default kubeconfig"},
	{"user", "`name` of the user in the kubeconfig"},
}

func (l *liveApp) root() *cobra.Command {
	root := &cobra.Command{
		Use:         "kubectl-vipgen",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl vipgen"},
		Short:       "Operate the virtual IPs of the cluster in your kubeconfig",
		Long: `kubectl vipgen runs commands of vipgen on the cluster of your kubeconfig, without export
files. It runs kubectl, or else oc, with your rights: objects by 'kubectl get', and the
state of the nodes' agents by 'kubectl exec' into their pods. It changes nothing in the
cluster, and reads no Secrets. A node that does not answer is named, and the others count.

Exit codes: 0 done; 1 drift or another finding, or the state of a node is missing; 2 bad
input or usage; 3 the cluster could not be read, or a file written; 4 'diff' or 'adopt'
found files of vipgen that another MachineConfig replaces.

Documentation: ` + command.Pages + `commands.md`,
		Example: "  kubectl vipgen status\n  oc vipgen doctor --context demo",
	}
	command.Setup(root)
	command.Group(root)
	migrate := l.migrateCommand()
	for _, c := range migrate.Commands() {
		use := strings.Replace(c.Use, " [install-config.yaml]", "", 1)
		asKubectl(c, use, 0, "migrate "+strings.Replace(use, "DIR", "migration", 1)+" --profile virtual")
	}
	root.AddCommand(
		l.onNodes(l.statusCommand(), "nodes", ".json", []string{"status", "-o", "json"}, "status", "status -o json"),
		l.onNodes(l.doctorCommand(), "records", "-"+strings.TrimPrefix(events.FileName, "."), []string{"events"}, "doctor --vip 192.0.2.5 --since 24h", "doctor -o html > moves.html"),
		l.onObjects(l.diffCommand(), "diff DIR", 1, "diff rendered", "diff rendered -o markdown"),
		l.onObjects(l.adoptCommand(), "adopt", 0, "adopt --dir demo --agent-image registry.example.com/vipgen-agent:v1.2.3", "adopt --dir demo --check --to 4.19"),
		l.onObjects(l.removeCommand(), "remove", 0, "remove", "remove --i-checked worker-3-is-off"),
		asKubectl(migrate, "migrate", -1, "migrate plan --profile virtual"),
	)
	flags := root.PersistentFlags()
	for _, f := range kubectlFlags {
		l.flags[f[0]] = flags.String(f[0], "", f[1])
	}
	flags.StringVar(&l.client.program, "client", "", "`program` to read the cluster with (default: $"+clientVariable+", or kubectl, or oc)")
	flags.StringVar(&l.keep, "keep", "", "new `directory` to keep what was read of the cluster in, for vipgen; MachineConfigs hold pull secrets (default: nothing is kept)")
	flags.BoolVarP(&l.quiet, "quiet", "q", false, "do not print what was written; problems are printed")
	_ = root.MarkPersistentFlagDirname("keep")
	command.AddVersion(root)
	root.SetIn(l.In)
	root.SetOut(l.Out)
	root.SetErr(l.Err)
	command.AddHelp(root)
	command.AddCompletion(root)
	return root
}

// asKubectl returns a command of vipgen with the arguments and help of kubectl vipgen.
func asKubectl(c *cobra.Command, use string, args int, examples ...string) *cobra.Command {
	c.Use, c.Long = use, c.Short+", as 'vipgen "+c.Name()+"' does.\n\nDocumentation: "+command.Pages+"commands.md"
	c.Example, c.ValidArgsFunction = "  kubectl vipgen "+strings.Join(examples, "\n  kubectl vipgen "), nil
	if args >= 0 {
		c.Args = command.Args(args, args)
	}
	return c
}

// begin creates the client, and a context that ends at a signal; done restores the default for
// signals.
func (l *liveApp) begin() (ctx context.Context, done func(), err error) {
	for _, f := range kubectlFlags {
		if value := *l.flags[f[0]]; value != "" {
			l.client.flags = append(l.client.flags, "--"+f[0]+"="+value)
		}
	}
	if err := newDirectory(l.keep); err != nil {
		return nil, nil, err
	}
	if err := l.client.find(); err != nil {
		return nil, nil, err
	}
	ctx, done = signal.NotifyContext(context.Background(), os.Interrupt)
	return ctx, done, nil
}

func withAdvice(err error) error {
	if errors.Is(err, errForbidden) {
		return fmt.Errorf("%w\nThe roles that it takes: %scommands.md#rights", err, command.Pages)
	}
	return err
}

// onNodes makes c a command that reads the output of vipgen-agent on all nodes from files in a
// folder.
func (l *liveApp) onNodes(c *cobra.Command, folder, ending string, ask []string, examples ...string) *cobra.Command {
	run := c.RunE
	asKubectl(c, c.Name(), 0, examples...)
	c.Flags().StringVarP(&l.namespace, "namespace", "n", "", "`namespace` of vipgen's pods (default: by the cluster's platform)")
	c.Flags().DurationVar(&l.timeout, "timeout", 20*time.Second, "`duration` to wait for each node")
	c.RunE = func(c *cobra.Command, _ []string) error {
		ctx, done, err := l.begin()
		if err != nil {
			return err
		}
		dir := l.keep
		if dir == "" {
			if dir, err = os.MkdirTemp("", "kubectl-vipgen-"); err != nil {
				done()
				return err
			}
			defer os.RemoveAll(dir)
		}
		err = l.queryAgents(ctx, filepath.Join(dir, folder), ending, ask)
		done()
		if err != nil {
			return withAdvice(err)
		}
		// Relative names of files are the same in each run.
		before, err := os.Getwd()
		if err == nil {
			err = os.Chdir(dir)
		}
		if err != nil {
			return err
		}
		defer os.Chdir(before)
		return run(c, []string{folder})
	}
	return c
}

func (l *liveApp) queryAgents(ctx context.Context, dir, ending string, ask []string) error {
	nodes, names, err := l.client.nodes(ctx)
	if err != nil {
		return err
	}
	namespace := l.namespace
	if namespace == "" {
		if namespace, err = l.client.namespace(ctx); err != nil {
			return err
		}
	}
	answers, err := l.client.ask(ctx, namespace, names, l.timeout, ask...)
	if err != nil {
		return err
	}
	if err := writeKept(filepath.Join(dir, "nodes.json"), nodes); err != nil {
		return err
	}
	for _, a := range answers {
		if a.err != nil {
			fmt.Fprintf(l.Err, "%s node %s: %s\n", command.Colours(l.Err).Paint(command.Yellow, "warning:"), a.node, command.SafeLine(a.err.Error()))
		} else if err := writeKept(filepath.Join(dir, a.node+ending), a.data); err != nil {
			return err
		}
	}
	return nil
}

// writeKept writes a file that only its owner can read, and its folder.
func writeKept(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o600)
}

// objects reads the cluster's objects. They reach the disk with --keep only.
func (l *liveApp) objects() ([]byte, error) {
	ctx, done, err := l.begin()
	if err != nil {
		return nil, err
	}
	defer done()
	data, missing, err := l.client.objects(ctx)
	if err != nil {
		return nil, withAdvice(err)
	}
	for _, kind := range missing {
		fmt.Fprintf(l.Err, "note: this cluster has no %s; read the others\n", kind)
	}
	if l.keep != "" {
		err = writeKept(filepath.Join(l.keep, "objects.yaml"), data)
	}
	return data, err
}

// onObjects makes c a command with the cluster's objects as standard input; it takes other
// arguments after them.
func (l *liveApp) onObjects(c *cobra.Command, use string, others int, examples ...string) *cobra.Command {
	run := c.RunE
	asKubectl(c, use, others, examples...)
	c.RunE = func(c *cobra.Command, args []string) error {
		data, err := l.objects()
		if err != nil {
			return err
		}
		l.In = bytes.NewReader(data)
		return run(c, append([]string{"-"}, args...))
	}
	return c
}

// cluster returns the running cluster, by its MachineConfigs.
func (l *liveApp) cluster() (*render.Cluster, error) {
	data, err := l.objects()
	if err != nil {
		return nil, err
	}
	cluster, list := runningCluster([]render.File{{Name: "-", Data: data}})
	if err := list.Err(); err != nil {
		return nil, err
	}
	l.Report(list)
	return cluster, nil
}
