package nodes

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/vipgen/vipgen/agent/monitor"
)

var (
	apiReachable = monitor.Gauge("vipgen_api_reachable", "Whether an API server answers now (1) or the last known state is used (0).")
	apiContact   = monitor.Gauge("vipgen_api_contact_timestamp_seconds", "When an API server last answered, or now while a watch is open, in seconds since 1970.")
	nodesKnown   = monitor.Gauge("vipgen_nodes", "Nodes of the cluster that are known, this one included; for the haproxy job those of the control plane.")
	nodesStale   = monitor.Gauge("vipgen_nodes_stale", "Whether no API server confirms the list of nodes (1) or one does (0).")
	nodesInvalid = monitor.Gauge("vipgen_nodes_invalid", "Nodes with invalid data, which is ignored.")
	registered   = monitor.Gauge("vipgen_node_registered", "Whether this node is in the cluster's list of nodes (1) or not (0).")
)

// Describe implements prometheus.Collector.
func (w *Watched) Describe(to chan<- *prometheus.Desc) {
	monitor.Families{apiReachable, apiContact, nodesKnown, nodesStale, nodesInvalid, registered}.Describe(to)
}

// Collect implements prometheus.Collector.
func (w *Watched) Collect(to chan<- prometheus.Metric) {
	if watcher := w.running(); watcher != nil {
		watcher.collect(to)
	}
}

func (w *Watcher) collect(to chan<- prometheus.Metric) {
	reachable, last := w.client.contacted()
	apiReachable.PutBool(to, reachable)
	apiContact.PutTime(to, last)
	s, known := w.Current()
	nodesKnown.Put(to, float64(len(s.All())))
	nodesStale.PutBool(to, !known || s.Stale)
	nodesInvalid.Put(to, float64(w.invalid.Load()))
	if !w.partial || s.Registered { // else not watched
		registered.PutBool(to, s.Registered)
	}
}
