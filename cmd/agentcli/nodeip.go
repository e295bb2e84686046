package agentcli

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/agent/nodeip"
)

func (a *app) nodeIPCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "node-ip",
		Short: "Choose the address by which kubelet and the other nodes know this node",
		Example: `  vipgen-agent node-ip show
  vipgen-agent node-ip set`,
	}, a.nodeIPShowCommand(), a.nodeIPSetCommand())
}

func (a *app) nodeIPShowCommand() *cobra.Command {
	var o formatFlag
	c := &cobra.Command{
		Use:   "show",
		Short: "Print what would be chosen now, without writing anything",
		Long: `Print the addresses that would be chosen now, the primary family's first, and on
standard error what is missing. As JSON, also why each was chosen, whether this is
a remote worker, and which other addresses the node has and why they do not count.

Exit code 1: an address is missing.`,
		Example: `  vipgen-agent node-ip show
  vipgen-agent node-ip show -o json`,
		Args: args(cobra.NoArgs),
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
	o.add(c)
	return c
}

func (a *app) showNodeIP(c nodeip.Choice, o formatFlag) error {
	if o.value == "json" {
		if err := a.printJSON(c); err != nil {
			return err
		}
	}
	for _, chosen := range c.Addresses {
		switch {
		case !chosen.Found():
			a.log.Warn("no address", "family", chosen.Family, "missing", chosen.Why)
		case o.value != "json":
			fmt.Fprintln(a.out, chosen.Address.Addr())
		}
	}
	if len(c.Missing()) > 0 {
		return errFinding
	}
	return nil
}

// timeoutFlag is that of commands that need the node's address.
type timeoutFlag struct{ time.Duration }

func (f *timeoutFlag) add(c *cobra.Command) {
	c.Flags().DurationVar(&f.Duration, "timeout", 0, "how long to wait at most; 0 is for ever")
}

// context ends when the time is over.
func (f timeoutFlag) context(ctx context.Context) (context.Context, context.CancelFunc) {
	if f.Duration <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, f.Duration, fmt.Errorf("waited for %v", f.Duration))
}

// preference is what the environment hints at and what was chosen before.
func (a *app) preference() (p nodeip.Preference, err error) {
	if p.Hints, err = nodeip.ReadHints(os.Getenv); err != nil {
		return p, &inputError{err}
	}
	if p.Kept, err = nodeip.ReadKept(a.root); err != nil {
		a.log.Warn("choosing as if for the first time", "error", err)
	}
	return p, nil
}

// choose fills in how to look, and waits for the node's address.
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
		Long: `Wait until this node has an address of its own, in every family that the cluster
uses, and write it to /run/nodeip-configuration and to the drop-ins
20-nodenet.conf of kubelet.service and crio.service. Files that are right already
are not touched; systemd needs a daemon-reload to see the others. Then switch on
forwarding on the interface of the address.

An address in the network of $NODEIP_HINT, or $KUBELET_NODEIP_HINT, is chosen if there
is one; else the address that was chosen before stays as long as the node has it.`,
		Example: `  vipgen-agent node-ip set
  vipgen-agent node-ip set --timeout 5m --grace 10s
  NODEIP_HINT=192.0.2.1 vipgen-agent node-ip set`,
		Args: args(cobra.NoArgs),
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
			changed, err := nodeip.Write(a.root, choice)
			if err != nil {
				return err
			}
			a.log.Info("node address", "addresses", choice.IPs(), "why", choice.Addresses[0].Why,
				"remoteWorker", choice.RemoteWorker, "changed", changed)
			forwarding, err := nodeip.Forward(a.root, choice)
			if len(forwarding) > 0 {
				a.log.Info("forwarding switched on", "of", forwarding)
			}
			// kubelet can start without; the next start of the unit tries again.
			if err != nil {
				a.log.Warn("forwarding is not on: VIPs may not be reachable through this node", "error", err)
			}
			return nil
		},
	}
	timeout.add(c)
	c.Flags().DurationVar(&grace, "grace", 30*time.Second, "how long to wait for the other address family once the primary's address is there")
	return c
}
