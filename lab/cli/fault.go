package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/lab/control"
)

func (a *app) killCommand(f *labFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "kill NODE",
		Short: "Power off a node of the lab",
		Long: `Power off a node: everything on it ends at once, without a shutdown. 'vipgen lab heal'
powers it on again.`,
		Example:           "  sudo vipgen lab kill master-0",
		Args:              command.Args(1, 1),
		ValidArgsFunction: f.complete(nodeNames(func(n control.Node) bool { return n.Power })),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.do(f, control.Request{Do: control.DoKill, Nodes: args})
		},
	}
}

func (a *app) healCommand(f *labFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "heal [NODE]",
		Short: "Undo all faults, or those of one node",
		Long: `Undo all faults of the lab, or those of one node: power on, links up, no partition,
services started. It returns when the nodes' pods were started.`,
		Example: `  sudo vipgen lab heal
  sudo vipgen lab heal master-0`,
		Args:              command.Args(0, 1),
		ValidArgsFunction: f.complete(nodeNames(func(control.Node) bool { return true })),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.do(f, control.Request{Do: control.DoHeal, Nodes: args})
		},
	}
}

func (a *app) partitionCommand(f *labFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "partition NODE[,NODE...]",
		Short: "Partition the lab's network",
		Long: `Partition the network: the named nodes on one side, all others on the other. The
machines 'client' and 'site' (etcd of the API servers, name server) and routers are on
the other side unless they are named. A second side can be named for clarity, after a bar in
quotes; all that neither names is on the second side.

A new partition replaces the one before; 'vipgen lab heal' undoes it.`,
		Example: `  sudo vipgen lab partition master-0
  sudo vipgen lab partition 'master-0,worker-0 | master-1,master-2'`,
		Args:              command.Args(1, -1),
		ValidArgsFunction: f.complete(machineNames),
		RunE: func(c *cobra.Command, args []string) error {
			side, err := firstSide(strings.Join(args, ","))
			if err != nil {
				return command.Usage(c, err)
			}
			return a.do(f, control.Request{Do: control.DoPartition, Nodes: side})
		},
	}
}

func machineNames(s *control.Status, args []string) (names []string) {
	names = lists.Map(s.Nodes, func(n control.Node) string { return n.Name })
	for _, m := range s.Others {
		names = append(names, m.Name)
	}
	return slices.DeleteFunc(names, func(n string) bool { return slices.Contains(args, n) })
}

// firstSide parses "a,b" or "a,b | c,d" and returns the first side. A node on both sides is an
// error.
func firstSide(text string) ([]string, error) {
	var sides [][]string
	for side := range strings.SplitSeq(text, "|") {
		sides = append(sides, strings.FieldsFunc(side, func(r rune) bool { return r == ',' || r == ' ' }))
	}
	switch {
	case len(sides) > 2:
		return nil, fmt.Errorf("a partition has two sides, not %d", len(sides))
	case len(sides[0]) == 0, len(sides) == 2 && len(sides[1]) == 0:
		return nil, fmt.Errorf("%q: expected the nodes of a side, such as master-0,worker-0", text)
	case len(sides) == 2:
		for _, name := range sides[1] {
			if slices.Contains(sides[0], name) {
				return nil, fmt.Errorf("%s is on both sides", name)
			}
		}
	}
	return sides[0], nil
}

func (a *app) serviceCommand(f *labFlags, do string) *cobra.Command {
	c := &cobra.Command{
		Use:     do + " NODE SERVICE",
		Short:   "Start a stopped service on a node of the lab",
		Long:    `Start a service that 'vipgen lab stop-service' stopped, and return once it was started.`,
		Example: "  sudo vipgen lab start-service master-0 haproxy",
		Args:    command.Args(2, 2),
		ValidArgsFunction: f.complete(func(s *control.Status, args []string) []string {
			return serviceNames(s, args, do == control.DoStop)
		}),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.do(f, control.Request{Do: do, Nodes: args[:1], Service: args[1]})
		},
	}
	if do == control.DoStop {
		c.Short = "Stop a service on a node of the lab"
		c.Long = `Stop a service as an administrator would, and return once it has ended. Services are
the node's pods (keepalived, haproxy, coredns, mdns-publisher), whose manifests move
to /etc/kubernetes/disabled-manifests, and api-server, machine-config-server and
router. Stopping the bootstrap host's api-server ends the bootstrap.`
		c.Example = "  sudo vipgen lab stop-service master-0 haproxy"
	}
	return c
}

// serviceNames completes a node, and then a service of it that runs, or does not run.
func serviceNames(s *control.Status, args []string, running bool) []string {
	fits := func(n control.Node, service string) bool {
		return n.Power && slices.Contains(n.Stopped, service) != running
	}
	if len(args) == 0 {
		return nodeNames(func(n control.Node) bool {
			return slices.ContainsFunc(n.Services, func(service string) bool { return fits(n, service) })
		})(s, args)
	}
	for _, n := range s.Nodes {
		if n.Name == args[0] && len(args) == 1 {
			return slices.DeleteFunc(slices.Clone(n.Services), func(service string) bool { return !fits(n, service) })
		}
	}
	return nil
}
