package agentcli

import (
	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/agent/nodeip"
	"github.com/vipgen/vipgen/agent/resolvconf"
)

func (a *app) resolvConfCommand() *cobra.Command {
	var timeout timeoutFlag
	c := &cobra.Command{
		Use:   "resolv-conf",
		Short: "Put this node's own DNS server first in resolv.conf",
		Long: `Write /etc/resolv.conf from NetworkManager's, with this node's own address as the
first nameserver and the cluster's domain as the first to search, before those
of the network and of DHCP, and have NetworkManager look up the host's name
again. Where systemd-resolved is in use, write a drop-in for it instead and have it reloaded.
Wait while the node has no address or the network has brought no nameserver yet.`,
		Example: `  vipgen-agent resolv-conf

  # From a container that has the host's /etc and /run below /host
  vipgen-agent resolv-conf --root=/host`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			spec, err := a.cluster()
			if err != nil {
				return err
			}
			ctx, stop := timeout.context(c.Context())
			defer stop()
			choice, err := a.choose(ctx, nodeip.Waiter{Spec: spec, Primary: true})
			if err != nil {
				return err
			}
			job := resolvconf.Job{
				Spec: spec, Log: a.log, Root: a.root,
				Address: choice.IPs()[0], Own: choice.Own(), VIPs: nodeip.VIPs(spec),
				Reload: resolvconf.ReloadResolved, Changed: resolvconf.ReloadNetworkManager,
			}
			return job.Run(ctx)
		},
	}
	timeout.add(c)
	return c
}
