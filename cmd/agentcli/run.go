package agentcli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/job"
	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/agent/monitor"
	"github.com/vipgen/vipgen/agent/nodelist"
	"github.com/vipgen/vipgen/agent/nodes"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/liveness"
	"github.com/vipgen/vipgen/internal/liveness/early"
)

// Files that a job keeps next to the configuration of its daemon, in a directory that
// outlives the pod.
const (
	keptCluster = ".vipgen-cluster.yaml"
	keptNodes   = ".vipgen-nodes.json"
)

type jobFlags struct{ role, kubeconfig, nodes string }

func nodeName() (string, error) {
	if name := os.Getenv("NODE_NAME"); name != "" {
		return name, nil
	}
	return "", &inputError{errors.New("the environment variable NODE_NAME must hold the name of this node")}
}

func (a *app) below(path string) string { return filepath.Join(a.root, path) }

func (a *app) jobCommand(k job.Kind) *cobra.Command {
	var f jobFlags
	c := &cobra.Command{Use: k.Name + " --role ROLE", Short: k.Short, Long: k.Long, Example: k.Example, Args: command.Args(0, 0)}
	c.Flags().StringVar(&f.role, "role", "", "`pool` of this node: bootstrap, master, worker, arbiter or a custom one")
	if k.Conf != "" {
		c.Flags().StringVar(&f.kubeconfig, "kubeconfig", "/var/lib/kubelet/kubeconfig", "`file` with the credentials for the API, below --root")
		c.Flags().StringVar(&f.nodes, "nodes", "", "`file` with the list of nodes, instead of the API's")
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		if f.role == "" {
			return command.Usagef(c, "missing: --role ROLE")
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
		t := task{Kind: k, env: job.Environment{Root: a.root, State: dir, Log: a.log, Source: source}}
		if k.Kept != "" {
			source.Kept = a.below(k.Kept)
		}
		if k.Conf == "" {
			return a.runTask(c.Context(), t)
		}
		t.env.Checks = health.NewMetrics()
		return a.runWithNodes(c.Context(), t, f)
	}
	return c
}

// runWithNodes is runTask for a job that follows the list of nodes.
func (a *app) runWithNodes(ctx context.Context, t task, f jobFlags) error {
	nextTo := func(file string) string { return a.below(filepath.Join(filepath.Dir(t.Conf), file)) }
	source := t.env.Source
	source.Kept = nextTo(keptCluster)
	if f.nodes != "" {
		source.Nodes = facts.NewFile(f.nodes, source.Name, a.log)
	} else {
		o := nodelist.Options{
			Node: source.Name, Role: f.role, Kubeconfig: a.below(f.kubeconfig), StateFile: nextTo(keptNodes), Log: a.log,
		}
		if t.Watch != nil {
			t.Watch(f.role, &o)
		}
		source.Nodes = nodes.NewWatched(o)
	}
	ctx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	all.Go(func() {
		if err := source.Nodes.Run(ctx); err != nil {
			a.log.Error("cannot follow the list of nodes", "error", err)
		}
	})
	all.Go(func() {
		if nodes.AwaitReplaced(ctx, a.below(f.kubeconfig), source.Name, func() bool { return source.Nodes.Current().Stale }) {
			a.log.Warn("kubeconfig replaced, and no API server accepts the mounted one: exiting to be restarted with the new one", "kubeconfig", f.kubeconfig)
			stop()
		}
	})
	return a.runTask(ctx, t)
}

type task struct {
	job.Kind
	env job.Environment
	job job.Job // made by runTask
}

// runTask creates a job and runs it until ctx ends. Until it has ended, its log level can
// be changed, and it serves metrics and health.
func (a *app) runTask(ctx context.Context, t task) error {
	t.job = t.New(t.env)
	meanwhile, stop := context.WithCancel(context.WithoutCancel(ctx))
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	level := logging.LevelFollower{Dir: a.below(v1alpha1.RunDir), Job: t.Name, Usual: a.level.Level(), Level: &a.level, Log: a.log}
	all.Go(func() {
		if err := level.Run(meanwhile); err != nil {
			a.log.Warn("cannot follow the log level", "error", err)
		}
	})
	all.Go(func() { liveness.Answer(meanwhile, a.below(v1alpha1.JobDir(t.Name)), t.job.Stuck, a.log) })
	all.Go(func() {
		liveness.Serve(meanwhile, a.below(v1alpha1.JobDir(t.Name)), early.Socket, func() string { return t.alive(meanwhile) }, a.log)
	})
	server := monitor.Server{Port: t.port, Metrics: t.metrics(), Health: t.health, Version: command.Version(), Revision: command.Revision(), Addresses: t.addresses, Log: a.log}
	all.Go(func() { server.Run(meanwhile) })
	return t.job.Run(ctx)
}

// port returns the port of the job: 0 before cluster.yaml was read, and the default while
// it is invalid.
func (t task) port() int {
	usual := t.Port(v1alpha1.DefaultPorts)
	c := t.env.Source.Cluster()
	switch {
	case c != nil:
		return cmp.Or(t.Port(c.Spec.Ports), usual)
	case t.env.Source.Problem() == "":
		return 0
	}
	return usual
}

// addresses returns the node's own addresses, without VIPs, if the cluster exposes
// metrics there.
func (t task) addresses() []netip.Addr {
	c := t.env.Source.Cluster()
	if c == nil || c.Spec.Metrics != v1alpha1.MetricsOnNode {
		return nil
	}
	choice, err := t.env.Source.Choice()
	if err != nil {
		return nil // logged by the job
	}
	return choice.IPs()
}

func (t task) health(ctx context.Context) error {
	if t.env.Source.Cluster() == nil {
		return fmt.Errorf("no valid cluster.yaml yet: %s", cmp.Or(t.env.Source.Problem(), "not read yet"))
	}
	return t.job.Health(ctx)
}

func (t task) metrics() []prometheus.Collector {
	out := []prometheus.Collector{t.job, t.env.Source}
	if t.env.Checks != nil {
		out = append(out, t.env.Checks)
	}
	return out
}
