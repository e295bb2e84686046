package agentcli

import (
	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/agent/nodeip"
	"github.com/vipgen/vipgen/agent/resolvconf"
	"github.com/vipgen/vipgen/cmd/command"
)

func (a *app) resolvConfCommand() *cobra.Command {
	var timeout timeoutFlag
	c := &cobra.Command{
		Use:   "resolv-conf",
		Short: "Put this node's DNS server first in resolv.conf",
		Long: `Write /etc/resolv.conf from NetworkManager's, with this node's address as the first
nameserver and the cluster's domain first in search, and make NetworkManager look up
the host name again. With systemd-resolved, write a drop-in for it instead and reload
it. Wait while the node has no address or the network no nameserver.`,
		Example: `  vipgen-agent resolv-conf

  # From a container that has the host's /etc and /run below /host
  vipgen-agent resolv-conf --root=/host`,
		Args: command.Args(0, 0),
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
