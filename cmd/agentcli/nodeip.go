package agentcli

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/agent/nodeip"
	"github.com/vipgen/vipgen/cmd/command"
)

func (a *app) nodeIPCommand() *cobra.Command {
	return command.Group(&cobra.Command{
		Use:   "node-ip",
		Short: "Choose this node's address for kubelet and the other nodes",
		Example: `  vipgen-agent node-ip show
  vipgen-agent node-ip set`,
	}, a.nodeIPShowCommand(), a.nodeIPSetCommand())
}

func (a *app) nodeIPShowCommand() *cobra.Command {
	var o command.Format
	c := &cobra.Command{
		Use:   "show",
		Short: "Print the address that would be chosen, without writing it",
		Long: `Print the addresses that would be chosen now, the primary family's first, and on
standard error missing ones, and which addresses do not count and why. As JSON, also why
each was chosen, and whether this is a remote worker.

Exit code 1: an address is missing.`,
		Example: `  vipgen-agent node-ip show
  vipgen-agent node-ip show -o json`,
		Args: command.Args(0, 0),
		RunE: func(*cobra.Command, []string) error {
			spec, err := a.cluster()
			if err != nil {
				return err
			}
			prefer, err := a.preference()
			if err != nil {
				return err
			}
			s, err := nodeip.Read()
			if err != nil {
				return err
			}
			return a.showNodeIP(nodeip.Choose(s, spec, prefer), o)
		},
	}
	o.Add(c, "text", "json")
	return c
}

func (a *app) showNodeIP(c nodeip.Choice, o command.Format) error {
	a.logLeftOut(c)
	if o == "json" {
		if err := a.printJSON(c); err != nil {
			return err
		}
	}
	for _, chosen := range c.Addresses {
		switch {
		case !chosen.Found():
			a.log.Warn("no address", "family", chosen.Family, "missing", chosen.Why)
		case o != "json":
			fmt.Fprintln(a.out, chosen.Address.Addr())
		}
	}
	if len(c.Missing()) > 0 {
		return command.ErrFinding
	}
	return nil
}

// logLeftOut logs unused addresses of the node, and why.
func (a *app) logLeftOut(c nodeip.Choice) {
	for _, r := range c.LeftOut() {
		a.log.Info("address left out", "interface", r.Interface, "address", r.Address, "why", r.Why)
	}
}

// timeoutFlag is the flag of commands that need the node's address.
type timeoutFlag struct{ time.Duration }

func (f *timeoutFlag) add(c *cobra.Command) {
	c.Flags().DurationVar(&f.Duration, "timeout", 0, "maximum `duration` of the wait; 0 is unlimited")
}

func (f timeoutFlag) context(ctx context.Context) (context.Context, context.CancelFunc) {
	if f.Duration <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, f.Duration, fmt.Errorf("waited for %v", f.Duration))
}

// preference returns the hints of the environment, the address chosen before, and those
// of the Node.
func (a *app) preference() (p nodeip.Preference, err error) {
	if p.Hints, err = nodeip.ReadHints(os.Getenv); err != nil {
		return p, &inputError{err}
	}
	if p.Kept, err = nodeip.ReadKept(a.root); err != nil {
		a.log.Warn("cannot read the address chosen before", "error", err)
	}
	if p.Registered, err = nodeip.ReadRegistered(a.root); err != nil {
		a.log.Warn("cannot read the addresses of the Node", "error", err)
	}
	return p, nil
}

// choose completes w and waits for the node's address.
func (a *app) choose(ctx context.Context, w nodeip.Waiter) (nodeip.Choice, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	prefer, err := a.preference()
	if err != nil {
		return nodeip.Choice{}, err
	}
	changes, err := nodeip.Watch(ctx)
	if err != nil {
		return nodeip.Choice{}, err
	}
	w.Preference = prefer
	w.Log, w.Read, w.Changes = a.log, nodeip.Read, changes
	return w.Wait(ctx)
}

func (a *app) nodeIPSetCommand() *cobra.Command {
	var timeout timeoutFlag
	var grace time.Duration
	c := &cobra.Command{
		Use:   "set",
		Short: "Write the address of this node for kubelet, CRI-O and the pods",
		Long: `Wait until this node has an address in every family that the cluster uses, and write
it to /run/nodeip-configuration and to the drop-ins 20-nodenet.conf of kubelet.service
and crio.service. Correct files are not touched; systemd needs a daemon-reload for the
others. Then enable forwarding on the interface of the address.

The address that the node has stays as long as it has it. The network of $NODEIP_HINT, or
$KUBELET_NODEIP_HINT, is one more to choose from, where the unit hands these on.`,
		Example: `  vipgen-agent node-ip set
  vipgen-agent node-ip set --timeout 5m --grace 10s
  NODEIP_HINT=192.0.2.1 vipgen-agent node-ip set`,
		Args: command.Args(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			spec, err := a.cluster()
			if err != nil {
				return err
			}
			ctx, stop := timeout.context(c.Context())
			defer stop()
			choice, err := a.choose(ctx, nodeip.Waiter{Spec: spec, Grace: grace})
			if err != nil {
				return err
			}
			a.logLeftOut(choice)
			changed, err := nodeip.Write(a.root, choice)
			if err != nil {
				return err
			}
			a.log.Info("node address chosen", "addresses", choice.IPs(), "why", choice.Addresses[0].Why,
				"remoteWorker", choice.RemoteWorker, "changed", changed)
			forwarding, err := nodeip.Forward(a.root, choice)
			if len(forwarding) > 0 {
				a.log.Info("forwarding enabled", "of", forwarding)
			}
			// kubelet can start without forwarding; the next start of the unit tries
			// again.
			if err != nil {
				a.log.Warn("cannot enable forwarding: VIPs may not be reachable through this node", "error", err)
			}
			return nil
		},
	}
	timeout.add(c)
	c.Flags().DurationVar(&grace, "grace", 30*time.Second, "`duration` of the wait for the other address family after the primary one")
	return c
}
