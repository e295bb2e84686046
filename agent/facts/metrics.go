package facts

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/vipgen/vipgen/agent/monitor"
	"github.com/vipgen/vipgen/agent/nodes"
)

var clusterCurrent = monitor.Gauge("vipgen_cluster_config_current", "Whether cluster.yaml on disk is in use (1) or the last good one is (0).")

var interfacesIgnored = monitor.Gauge("vipgen_interfaces_ignored", "Interfaces with addresses that are ignored because no configuration can contain their name.")

// Describe implements prometheus.Collector.
func (s *Source) Describe(to chan<- *prometheus.Desc) {
	monitor.Families{clusterCurrent, interfacesIgnored}.Describe(to)
	if w, ok := s.Nodes.(*Watched); ok {
		nodes.Metrics{Watcher: w.current}.Describe(to)
	}
}

// Collect implements prometheus.Collector.
func (s *Source) Collect(to chan<- prometheus.Metric) {
	clusterCurrent.PutBool(to, s.Problem() == "")
	s.mu.Lock()
	ignored := s.ignored
	s.mu.Unlock()
	interfacesIgnored.Put(to, float64(ignored))
	if w, ok := s.Nodes.(*Watched); ok {
		nodes.Metrics{Watcher: w.current}.Collect(to)
	}
}

// current returns the watcher, nil before SetCluster.
func (w *Watched) current() *nodes.Watcher {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.watcher
}
