package agentcli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/agent/keepalived"
	"github.com/vipgen/vipgen/agent/nodes"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/agent/supervise"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// nodeFlags are those of jobs that know their node and read the cluster's.
type nodeFlags struct{ role, kubeconfig string }

func (f *nodeFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.role, "role", "", "`pool` of this node: bootstrap, master, worker, arbiter or a custom one")
	c.Flags().StringVar(&f.kubeconfig, "kubeconfig", "/var/lib/kubelet/kubeconfig", "`file` with the credentials for the API, below --root")
}

// nodeName is how the API knows this node.
func nodeName() (string, error) {
	if name := os.Getenv("NODE_NAME"); name != "" {
		return name, nil
	}
	return "", &inputError{errors.New("the environment variable NODE_NAME must hold the name of this node")}
}

func (a *app) keepalivedCommand() *cobra.Command {
	var f nodeFlags
	c := &cobra.Command{
		Use:   "keepalived --role ROLE",
		Short: "Run keepalived on this node, where it is to hold VIPs",
		Long: `Run keepalived as a child, with a configuration made from the cluster's facts, this
node's addresses and the other nodes, for as long as this node is to take part in
electing who holds the VIPs. The environment variable NODE_NAME holds the name of
this node. At SIGTERM keepalived gives its VIPs away and ends.`,
		Example: "  NODE_NAME=master-0 vipgen-agent keepalived --role=master --kubeconfig=/var/lib/kubelet/kubeconfig",
		Args:    args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if f.role == "" {
				return usage(c, errors.New("--role is missing"))
			}
			name, err := nodeName()
			if err != nil {
				return err
			}
			return a.keepalived(c.Context(), name, f)
		},
	}
	f.add(c)
	return c
}

func (a *app) keepalived(ctx context.Context, name string, f nodeFlags) error {
	dir, err := state.Open(a.below(v1alpha1.RunDir))
	if err != nil {
		return err
	}
	defer dir.Close()
	source := &keepalived.Source{Path: a.below(a.clusterConfig), Kept: a.below(keepalived.KeptCluster), Log: a.log}
	cluster, err := source.Await(ctx)
	if ctx.Err() != nil {
		return nil // asked to end before there was anything to do
	}
	if err != nil {
		return err
	}
	watch, err := keepalived.NewWatched(nodes.Options{
		Node: name, Role: f.role, Cluster: cluster, Log: a.log,
		Kubeconfig: a.below(f.kubeconfig), StateFile: a.below(keepalived.KeptNodes),
		RouterPods: f.role != v1alpha1.RoleBootstrap && f.role != v1alpha1.RoleArbiter,
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	all.Go(func() { watch.Run(ctx) })
	all.Go(func() { supervise.Reap(ctx) })
	job := keepalived.Job{
		Node: name, Role: f.role, Root: a.root, Source: source, Nodes: watch,
		State: dir, Program: "keepalived", Log: a.log,
	}
	return job.Run(ctx)
}

// below gives where a path of the host is.
func (a *app) below(path string) string { return filepath.Join(a.root, path) }
