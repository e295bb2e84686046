package agentcli

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/agent/monitor"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/liveness"
)

// job is what a long-running command runs. It shows its metrics as a Collector.
type job interface {
	prometheus.Collector
	// Run runs the job until ctx ends.
	Run(ctx context.Context) error
	// Stuck says which of its loops does not turn any more; nil if all do.
	Stuck() error
	// Health says what is wrong with the job, nil if it works as it should.
	Health(ctx context.Context) error
}

// monitorPorts are where the jobs serve metrics and health.
var monitorPorts = map[string]func(v1alpha1.Ports) int{
	"coredns":    func(p v1alpha1.Ports) int { return p.CoreDNSMonitor },
	"firewall":   func(p v1alpha1.Ports) int { return p.FirewallMonitor },
	"haproxy":    func(p v1alpha1.Ports) int { return p.HAProxyMonitor },
	"keepalived": func(p v1alpha1.Ports) int { return p.KeepalivedMonitor },
	"mdns":       func(p v1alpha1.Ports) int { return p.MDNSMonitor },
}

// task is a job with what the command of that name knows of it.
type task struct {
	name   string
	job    job
	source *facts.Source
	checks *health.Metrics // nil if it has none
}

// runTask runs a job until ctx ends. Meanwhile its log level can be changed, and
// it can be watched, until it has ended.
func (a *app) runTask(ctx context.Context, t task) error {
	beside, stop := context.WithCancel(context.WithoutCancel(ctx))
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	level := logging.LevelFollower{Dir: a.below(v1alpha1.RunDir), Job: t.name, Usual: a.level.Level(), Level: &a.level, Log: a.log}
	all.Go(func() {
		if err := level.Run(beside); err != nil {
			a.log.Warn("the log level stays as it is", "error", err)
		}
	})
	all.Go(func() { liveness.Answer(beside, a.below(v1alpha1.JobDir(t.name)), t.job.Stuck, a.log) })
	server := monitor.Server{Port: t.port, Metrics: t.metrics(), Health: t.health, Log: a.log}
	all.Go(func() { server.Run(beside) })
	return t.job.Run(ctx)
}

// port is that of the job: 0 until cluster.yaml was looked at, and the usual one
// while that says nothing.
func (t task) port() int {
	port := monitorPorts[t.name]
	usual := port(v1alpha1.DefaultPorts)
	c := t.source.Cluster()
	switch {
	case c != nil:
		return cmp.Or(port(c.Spec.Ports), usual)
	case t.source.Problem() == "":
		return 0
	}
	return usual
}

func (t task) health(ctx context.Context) error {
	if t.source.Cluster() == nil {
		return fmt.Errorf("there was no right cluster.yaml so far: %s", cmp.Or(t.source.Problem(), "it was not read yet"))
	}
	return t.job.Health(ctx)
}

// metrics are those of the job and of what it stands on.
func (t task) metrics() []prometheus.Collector {
	out := []prometheus.Collector{t.job, t.source}
	if t.checks != nil {
		out = append(out, t.checks)
	}
	return out
}
