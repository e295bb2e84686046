// Package cli is the command tree of vipgen-lab, which runs as vipgen lab.
package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/input"
	"github.com/vipgen/vipgen/lab/control"
)

// Run executes a command line and returns its exit code.
func Run(args []string, in io.Reader, out, errOut io.Writer) int {
	a := &app{Console: command.Console{Out: out, Err: errOut}, Reader: input.Reader{In: in}, args: args}
	return a.Exit(command.Execute(context.Background(), a.root(), args))
}

// Command returns the command tree, for man pages.
func Command() *cobra.Command { return (&app{}).root() }

// app holds the streams and what the commands share.
type app struct {
	command.Console
	input.Reader
	// args is the command line.
	args []string
}

// labFlags selects the lab of a command.
type labFlags struct{ dir, name string }

func (a *app) root() *cobra.Command {
	var f labFlags
	root := &cobra.Command{
		Use:         "vipgen-lab",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "vipgen lab"},
		Short:       "Run a cluster on this machine and break it",
		Long: `Build the cluster of an install-config from network namespaces on this Linux machine,
run on its nodes the output of 'vipgen render', with the same files and pod manifests,
and see which nodes hold the VIPs while nodes, links and services fail.

It needs root, and Debian's haproxy, iproute2, keepalived, nftables, runc and
util-linux. It touches neither this machine's network nor files outside of the lab's
directory.`,
		Example: `  sudo vipgen lab up install-config.yaml --detach
  sudo vipgen lab status
  sudo vipgen lab kill master-0
  sudo vipgen lab heal
  sudo vipgen lab down`,
	}
	command.Setup(root)
	command.Group(root,
		a.upCommand(&f), a.statusCommand(&f), a.execCommand(&f), a.killCommand(&f), a.healCommand(&f),
		a.partitionCommand(&f), a.serviceCommand(&f, control.DoStop), a.serviceCommand(&f, control.DoStart), a.downCommand(&f),
		a.benchCommand(), a.chaosCommand(), a.saturateCommand(), a.stallCommand(),
	)
	flags := root.PersistentFlags()
	flags.StringVar(&f.dir, "dir", control.DefaultBase, "`directory` of labs, each in a folder of its name")
	flags.StringVar(&f.name, "name", "", "`name` of the lab (default: for up the cluster's name, else the only lab)")
	_ = root.MarkPersistentFlagDirname("dir")
	_ = root.RegisterFlagCompletionFunc("name", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		names, _ := control.All(f.dir)
		return names, cobra.ShellCompDirectiveNoFileComp
	})
	none := root.RunE
	command.AddVersion(root)
	version := root.RunE
	root.RunE = func(c *cobra.Command, args []string) error {
		if c.Flags().Changed("version") {
			return version(c, args)
		}
		return none(c, args)
	}
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	command.AddHelp(root)
	root.CompletionOptions.DisableDefaultCmd = true // vipgen does it
	return root
}

// asRoot returns an error if the process is not root.
func asRoot() error {
	if os.Geteuid() != 0 {
		return errors.New("a lab is made of network namespaces, which need root: run it with sudo")
	}
	return nil
}

// find returns the place of the lab of a command.
func (f *labFlags) find() (control.Place, error) {
	if err := asRoot(); err != nil {
		return control.Place{}, err
	}
	return control.Find(f.dir, f.name)
}

// ask sends a request to the lab of a command.
func (f *labFlags) ask(ctx context.Context, r control.Request) (*control.Reply, error) {
	place, err := f.find()
	if err != nil {
		return nil, err
	}
	return place.Ask(ctx, r)
}

// do sends a request to the lab and prints what was done.
func (a *app) do(f *labFlags, r control.Request) error {
	reply, err := f.ask(context.Background(), r)
	if err != nil {
		return err
	}
	return a.println(reply.Done)
}

// downFor is the time limit for the removal of a lab: many times what stopping its processes takes
// on a busy machine.
const downFor = 3 * time.Minute

func (a *app) downCommand(f *labFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Remove a lab, also after a crash",
		Long: `Stop the lab, and remove its namespaces, control groups and files. The lab's directory
has a record of all of them, so this also works after a crash; nothing else is
touched. It is no error if there is no lab.`,
		Example: "  sudo vipgen lab down",
		Args:    command.Args(0, 0),
		RunE: func(*cobra.Command, []string) error {
			place, err := f.find()
			var none *control.NoLabError
			if errors.As(err, &none) {
				return a.println("no lab: nothing to remove")
			}
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(context.Background(), downFor)
			defer cancel()
			ran, err := place.Down(ctx)
			if err != nil {
				return err
			}
			if !ran {
				return a.println("removed the rest of the lab " + place.Name + ", whose process had crashed")
			}
			return a.println("removed the lab " + place.Name)
		},
	}
}

func (a *app) println(line string) error {
	_, err := a.Out.Write([]byte(command.SafeLine(line) + "\n"))
	return err
}

// completeFor is the time limit of shell completion from a running lab.
const completeFor = 2 * time.Second

// completion completes an argument from the state of the running lab.
type completion = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

func (f *labFlags) complete(names func(s *control.Status, args []string) []string) completion {
	return func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(context.Background(), completeFor)
		defer cancel()
		reply, err := f.ask(ctx, control.Request{Do: control.DoStatus})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		list := slices.DeleteFunc(names(reply.Status, args), func(s string) bool { return !strings.HasPrefix(s, begun) })
		return list, cobra.ShellCompDirectiveNoFileComp
	}
}

// nodeNames completes the names of the nodes that fit, for the first argument.
func nodeNames(fits func(control.Node) bool) func(*control.Status, []string) []string {
	return func(s *control.Status, args []string) (names []string) {
		for _, n := range s.Nodes {
			if len(args) == 0 && fits(n) {
				names = append(names, n.Name)
			}
		}
		return names
	}
}
