package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/lab/control"
)

func (a *app) execCommand(f *labFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "exec NODE -- COMMAND [ARGUMENT...]",
		Short: "Run a command on a node of the lab",
		Long: `Run a program of this machine in a node's namespaces: it sees the node's network and
processes. The file system is this machine's; the working directory is the node's /,
so that 'cat etc/keepalived/keepalived.conf' prints the node's file. 'vipgen-agent' is
the lab's, and reads the node's files. Other machines, client, site and routers, have
only a network; a router's vtysh or birdc reaches its own daemons.

The exit code is that of the command.`,
		Example: `  sudo vipgen lab exec master-0 -- ip -brief address
  sudo vipgen lab exec master-0 -- cat etc/keepalived/keepalived.conf
  sudo vipgen lab exec master-0 -- vipgen-agent status
  sudo vipgen lab exec client -- curl -k https://192.0.2.5:6443/readyz
  sudo vipgen lab exec rack-a -- vtysh -c 'show bgp ipv4'
  sudo vipgen lab exec master-0 -- bash`,
		ValidArgsFunction: f.complete(func(s *control.Status, args []string) []string {
			if len(args) > 0 {
				return nil
			}
			return machineNames(s, args)
		}),
		RunE: func(c *cobra.Command, args []string) error {
			// Without the dashes, a flag of the command would be parsed as one of lab exec.
			if len(args) < 2 || c.ArgsLenAtDash() > 1 {
				return command.Usagef(c, "missing: a node and a command, as in vipgen lab exec NODE -- COMMAND")
			}
			reply, err := f.ask(context.Background(), control.Request{Do: control.DoStatus})
			if err != nil {
				return err
			}
			line, env, err := inside(reply.Status, args[0], args[1:])
			if err != nil {
				return err
			}
			return a.runInside(line, env)
		},
	}
}

// inside returns the arguments of nsenter that run a command on a machine, and additions to the
// environment.
func inside(s *control.Status, name string, line []string) (args, env []string, err error) {
	for _, m := range s.Others {
		if m.Name == name {
			if len(m.Shell) > 0 && line[0] == m.Shell[0] {
				line = append(slices.Clone(m.Shell), line[1:]...)
			}
			return append([]string{"--net=/run/netns/" + m.Namespace, "--"}, line...), nil, nil
		}
	}
	for _, n := range s.Nodes {
		switch {
		case n.Name != name:
		case !n.Power:
			return nil, nil, control.Mistake("%s is off: power it on with 'vipgen lab heal %[1]s'", name)
		default:
			if line[0] == "vipgen-agent" {
				line = append([]string{s.Agent}, line[1:]...)
			}
			enter := []string{"--target", strconv.Itoa(n.PID), "--mount", "--pid", "--net", "--uts", "--wdns=" + n.Root, "--"}
			return append(enter, line...), []string{v1alpha1.RootVariable + "=" + n.Root}, nil
		}
	}
	return nil, nil, control.Mistake("no machine %q in this lab: it has %s", name, strings.Join(machineNames(s, nil), ", "))
}

// runInside runs nsenter with the streams of this process. Signals from the terminal are handled by
// the program inside.
func (a *app) runInside(args, env []string) error {
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	cmd := exec.Command("nsenter", args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.In, a.Out, a.Err
	err := cmd.Run()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		if code := ended.ExitCode(); code >= 0 {
			return command.Code(code)
		}
		return fmt.Errorf("the command ended: %w", err)
	}
	return err
}
