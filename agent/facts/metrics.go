package facts

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/vipgen/vipgen/agent/monitor"
)

var clusterCurrent = monitor.Gauge("vipgen_cluster_config_current", "Whether cluster.yaml on disk is in use (1) or the last good one is (0).")

var interfacesIgnored = monitor.Gauge("vipgen_interfaces_ignored", "Interfaces with addresses that are ignored because no configuration can contain their name.")

// Describe implements prometheus.Collector.
func (s *Source) Describe(to chan<- *prometheus.Desc) {
	monitor.Families{clusterCurrent, interfacesIgnored}.Describe(to)
	if c, ok := s.Nodes.(prometheus.Collector); ok {
		c.Describe(to)
	}
}

// Collect implements prometheus.Collector.
func (s *Source) Collect(to chan<- prometheus.Metric) {
	clusterCurrent.PutBool(to, s.Problem() == "")
	s.mu.Lock()
	ignored := s.ignored
	s.mu.Unlock()
	interfacesIgnored.Put(to, float64(ignored))
	if c, ok := s.Nodes.(prometheus.Collector); ok {
		c.Collect(to)
	}
}
