package mdns

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/vipgen/vipgen/agent/monitor"
)

var (
	announced = monitor.Gauge("vipgen_mdns_announced", "Whether this node's name is announced on its link for its addresses (1) or not (0).")
	conflict  = monitor.Gauge("vipgen_mdns_conflict", "Whether another host on the link has this node's name (1) or none does (0).")
	hosts     = monitor.Gauge("vipgen_mdns_hosts", "Other hosts that are known by mDNS.")
)

// Describe implements prometheus.Collector.
func (j *Job) Describe(to chan<- *prometheus.Desc) {
	monitor.Families{announced, conflict, hosts}.Describe(to)
}

// Collect implements prometheus.Collector with the state published last.
func (j *Job) Collect(to chan<- prometheus.Metric) {
	p := j.last.Load()
	if p == nil {
		return
	}
	announced.PutBool(to, p.Announced)
	conflict.PutBool(to, p.Conflict != nil)
	hosts.Put(to, float64(len(p.Hosts)))
}
