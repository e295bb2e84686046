package haproxy

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vipgen/vipgen/agent/monitor"
)

var (
	serving   = monitor.Gauge("vipgen_haproxy_serving", "Whether HAProxy is ready, with at least one API server that takes connections (1), or not (0).")
	backendUp = monitor.Gauge("vipgen_haproxy_backend_up", "Whether HAProxy takes the API server for up (1) or down (0).", "backend", "address")
)

// Describe is part of prometheus.Collector.
func (j *Job) Describe(to chan<- *prometheus.Desc) {
	append(monitor.Families{serving, backendUp}, monitor.DaemonFamilies...).Describe(to)
}

// Collect is part of prometheus.Collector: of what the job published last.
func (j *Job) Collect(to chan<- prometheus.Metric) {
	s := j.told.Load()
	if s == nil {
		return
	}
	monitor.CollectDaemon(to, name, true, &s.Daemon)
	serving.PutBool(to, s.Serving)
	for _, b := range s.Backends {
		backendUp.PutBool(to, b.Up, b.Name, b.Address)
	}
}

// Stuck says which of the job's loops does not turn any more, for its liveness probe.
func (j *Job) Stuck() error { return j.loop.Stuck() }

// Health says what is wrong with the job, for /healthz. That no backend is up is
// not: HAProxy answers, and does what can be done.
func (j *Job) Health(ctx context.Context) error {
	if err := errors.Join(j.Stuck(), j.daemon.Health()); err != nil {
		return err
	}
	if err := probe(ctx); err != nil {
		return fmt.Errorf("HAProxy does not answer: %w", err)
	}
	return nil
}
