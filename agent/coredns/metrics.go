package coredns

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/vipgen/vipgen/agent/monitor"
)

var (
	serving   = monitor.Gauge("vipgen_coredns_serving", "Whether CoreDNS answers for the API's name (1) or not (0).")
	upstreams = monitor.Gauge("vipgen_coredns_upstreams", "Name servers of the network that answer all other names.")
)

// Describe implements prometheus.Collector.
func (j *Job) Describe(to chan<- *prometheus.Desc) {
	append(monitor.Families{serving, upstreams}, monitor.DaemonFamilies...).Describe(to)
}

// Collect implements prometheus.Collector with the state published last.
func (j *Job) Collect(to chan<- prometheus.Metric) {
	s := j.last.Load()
	if s == nil {
		return
	}
	monitor.CollectDaemon(to, name, true, &s.Daemon)
	serving.PutBool(to, s.Serving)
	upstreams.Put(to, float64(len(s.Upstreams)))
}
