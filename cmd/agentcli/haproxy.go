package agentcli

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/agent/coredns"
	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/haproxy"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// serviceFlags are those of jobs that serve what the nodes' list says.
type serviceFlags struct {
	nodeFlags
	nodes string
}

func (f *serviceFlags) add(c *cobra.Command) {
	f.nodeFlags.add(c)
	c.Flags().StringVar(&f.nodes, "nodes", "", "`file` with the list of nodes, in place of the API's")
}

func (a *app) haproxyCommand() *cobra.Command {
	return a.serviceCommand(&cobra.Command{
		Use:   "haproxy --role ROLE",
		Short: "Run HAProxy on this node, in front of every API server",
		Long: `Run HAProxy as a child, with every control-plane node that is known as a backend.
A change is checked by HAProxy's own parser, and reloaded without a connection that
is refused or reset. The environment variable NODE_NAME holds the name of this
node. At SIGTERM HAProxy takes no more connections, waits 20 seconds at most for
those that there are, and ends.`,
		Example: "  NODE_NAME=master-0 vipgen-agent haproxy --role=master --kubeconfig=/var/lib/kubelet/kubeconfig",
	}, v1alpha1.HAProxyConf, func(ctx context.Context, s *facts.Source, dir *state.Dir) error {
		job := haproxy.Job{Source: s, State: dir, Log: a.log}
		return job.Run(ctx)
	})
}

func (a *app) corednsCommand() *cobra.Command {
	return a.serviceCommand(&cobra.Command{
		Use:   "coredns --role ROLE",
		Short: "Run CoreDNS on this node, with the cluster's names",
		Long: `Run CoreDNS as a child. It knows the API's names, the ingress domains and the nodes,
and asks the network's name servers for everything else. The environment variable
NODE_NAME holds the name of this node.`,
		Example: "  NODE_NAME=worker-0 vipgen-agent coredns --role=worker --kubeconfig=/var/lib/kubelet/kubeconfig",
	}, v1alpha1.Corefile, func(ctx context.Context, s *facts.Source, dir *state.Dir) error {
		job := coredns.Job{Source: s, State: dir, Program: corednsProgram(), Log: a.log}
		return job.Run(ctx)
	})
}

// corednsProgram is in PATH in OpenShift's image, and at the top of the
// project's own.
func corednsProgram() string {
	if _, err := exec.LookPath("coredns"); err != nil {
		return "/coredns"
	}
	return "coredns"
}

// serviceCommand makes c run a job that keeps what it knows of the nodes beside
// its configuration file, which outlives the pod and the API.
func (a *app) serviceCommand(c *cobra.Command, conf string, run func(context.Context, *facts.Source, *state.Dir) error) *cobra.Command {
	var f serviceFlags
	c.Args = args(cobra.NoArgs)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if f.role == "" {
			return usage(c, errors.New("--role is missing"))
		}
		name, err := nodeName()
		if err != nil {
			return err
		}
		dir, err := state.Open(a.below(v1alpha1.RunDir))
		if err != nil {
			return err
		}
		defer dir.Close()
		source := &facts.Source{Name: name, Role: f.role, ClusterConfig: a.below(a.clusterConfig), Log: a.log}
		ctx, stop := context.WithCancel(c.Context())
		var all sync.WaitGroup
		defer all.Wait()
		defer stop()
		if f.nodes != "" {
			list := facts.NewFile(f.nodes, name, a.log)
			source.Nodes = list
			all.Go(func() {
				if err := list.Run(ctx); err != nil {
					a.log.Error("the list of nodes is not followed", "error", err)
				}
			})
		} else {
			watch := facts.NewWatched(source, a.below(f.kubeconfig), filepath.Join(filepath.Dir(conf), ".vipgen-nodes.json"), a.log)
			source.Nodes = watch
			all.Go(func() { watch.Run(ctx) })
		}
		return run(ctx, source, dir)
	}
	f.add(c)
	return c
}

func probeHAProxy(ctx context.Context, _ *state.Dir, _ string) error { return haproxy.Probe(ctx) }

func probeCoreDNS(ctx context.Context, dir *state.Dir, _ string) error {
	return coredns.Probe(ctx, dir)
}
