package coredns

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vipgen/vipgen/agent/monitor"
)

var (
	serving   = monitor.Gauge("vipgen_coredns_serving", "Whether CoreDNS answers for the API's name (1) or not (0).")
	upstreams = monitor.Gauge("vipgen_coredns_upstreams", "Name servers of the network that answer all other names.")
)

// Describe is part of prometheus.Collector.
func (j *Job) Describe(to chan<- *prometheus.Desc) {
	append(monitor.Families{serving, upstreams}, monitor.DaemonFamilies...).Describe(to)
}

// Collect is part of prometheus.Collector: of what the job published last.
func (j *Job) Collect(to chan<- prometheus.Metric) {
	s := j.told.Load()
	if s == nil {
		return
	}
	monitor.CollectDaemon(to, name, true, &s.Daemon)
	serving.PutBool(to, s.Serving)
	upstreams.Put(to, float64(len(s.Upstreams)))
}

// Stuck says which of the job's loops does not turn any more, for its liveness probe.
func (j *Job) Stuck() error { return j.loop.Stuck() }

// Health says what is wrong with the job, for /healthz.
func (j *Job) Health(context.Context) error {
	if err := errors.Join(j.Stuck(), j.daemon.Health()); err != nil {
		return err
	}
	if s := j.told.Load(); s != nil && !s.Serving {
		return errors.New("CoreDNS does not answer: " + s.Why)
	}
	return nil
}
