package agentcli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/nodes"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
)

// What a job keeps beside its configuration file, in a directory that outlives
// the pod.
const (
	keptCluster = ".vipgen-cluster.yaml"
	keptNodes   = ".vipgen-nodes.json"
)

// daemonJob is a job that runs a daemon by what it knows of the node, the cluster
// and its nodes.
type daemonJob struct {
	// conf is the path of the daemon's configuration.
	conf string
	// job makes the job, whose checks are measured.
	job func(*facts.Source, *state.Dir, *health.Metrics) job
	// watch says what to watch besides the nodes, on a node of a pool; nil for
	// nothing.
	watch func(role string, o *nodes.Options)
}

// serviceFlags are those of a daemonJob.
type serviceFlags struct{ role, kubeconfig, nodes string }

func (f *serviceFlags) add(c *cobra.Command) {
	addRole(c, &f.role)
	c.Flags().StringVar(&f.kubeconfig, "kubeconfig", "/var/lib/kubelet/kubeconfig", "`file` with the credentials for the API, below --root")
	c.Flags().StringVar(&f.nodes, "nodes", "", "`file` with the list of nodes, instead of the API's")
}

func addRole(c *cobra.Command, role *string) {
	c.Flags().StringVar(role, "role", "", "`pool` of this node: bootstrap, master, worker, arbiter or a custom one")
}

// nodeName is how the API knows this node.
func nodeName() (string, error) {
	if name := os.Getenv("NODE_NAME"); name != "" {
		return name, nil
	}
	return "", &inputError{errors.New("the environment variable NODE_NAME must hold the name of this node")}
}

// serviceCommand makes c run a job.
func (a *app) serviceCommand(c *cobra.Command, s daemonJob) *cobra.Command {
	var f serviceFlags
	c.Args = command.Args(0, 0)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if f.role == "" {
			return command.Usagef(c, "missing: --role ROLE")
		}
		name, err := nodeName()
		if err != nil {
			return err
		}
		return a.serve(c.Context(), c.Name(), name, f, s)
	}
	f.add(c)
	return c
}

func (a *app) serve(ctx context.Context, command, name string, f serviceFlags, s daemonJob) error {
	dir, err := state.Open(a.below(v1alpha1.RunDir))
	if err != nil {
		return err
	}
	defer dir.Close()
	beside := func(file string) string { return a.below(filepath.Join(filepath.Dir(s.conf), file)) }
	source := &facts.Source{
		Name: name, Role: f.role, ClusterConfig: a.below(a.clusterConfig), Kept: beside(keptCluster), Log: a.log,
	}
	if f.nodes != "" {
		source.Nodes = facts.NewFile(f.nodes, name, a.log)
	} else {
		o := nodes.Options{
			Node: name, Role: f.role, Kubeconfig: a.below(f.kubeconfig), StateFile: beside(keptNodes), Log: a.log,
		}
		if s.watch != nil {
			s.watch(f.role, &o)
		}
		source.Nodes = facts.NewWatched(o)
	}
	ctx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	all.Go(func() {
		if err := source.Nodes.Run(ctx); err != nil {
			a.log.Error("the list of nodes is not followed", "error", err)
		}
	})
	all.Go(func() {
		if nodes.AwaitReplaced(ctx, a.below(f.kubeconfig), name, func() bool { return source.Nodes.Current().Stale }) {
			a.log.Warn("the kubeconfig was replaced and no API server takes this one: ending, to be started anew with the other", "kubeconfig", f.kubeconfig)
			stop()
		}
	})
	checks := health.NewMetrics()
	return a.runTask(ctx, task{name: command, job: s.job(source, dir, checks), source: source, checks: checks})
}

// below gives where a path of the host is.
func (a *app) below(path string) string { return filepath.Join(a.root, path) }
