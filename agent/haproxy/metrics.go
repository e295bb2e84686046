package haproxy

import (
	"maps"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vipgen/vipgen/agent/monitor"
	"github.com/vipgen/vipgen/agent/state"
)

var (
	serving    = monitor.Gauge("vipgen_haproxy_serving", "Whether HAProxy is ready, with at least one API server that accepts connections (1), or not (0).")
	servingOwn = monitor.Gauge("vipgen_haproxy_serving_own", "On compute nodes, whether HAProxy has a control-plane node that accepts connections (1) or programs of this node use the holder of the VIP (0).")
	silences   = monitor.Counter("vipgen_haproxy_server_silent_total", "How often the server fell silent, so that HAProxy's connections to it were ended.", "backend")
	ended      = monitor.Counter("vipgen_haproxy_connections_ended_total", "Connections that were ended because the server behind them had fallen silent.", "backend")
	backendUp  = monitor.Gauge("vipgen_haproxy_backend_up", "Whether HAProxy considers the API server (on compute nodes: the HAProxy of that node) up (1) or down (0).", "backend", "address")
)

// Describe implements prometheus.Collector.
func (j *Job) Describe(to chan<- *prometheus.Desc) {
	append(monitor.Families{serving, servingOwn, silences, ended, backendUp}, monitor.DaemonFamilies...).Describe(to)
}

// Collect implements prometheus.Collector with the state published last.
func (j *Job) Collect(to chan<- prometheus.Metric) {
	s := j.last.Load()
	if s == nil {
		return
	}
	monitor.CollectDaemon(to, name, true, &s.Daemon)
	if s.Own {
		servingOwn.PutBool(to, s.Serving)
	} else {
		serving.PutBool(to, s.Serving)
	}
	// Zero for servers that were never silent, so that the first time counts as an
	// increase.
	silenced := maps.Clone(s.Silenced)
	if silenced == nil {
		silenced = map[string]state.Silenced{}
	}
	for _, b := range s.Backends {
		backendUp.PutBool(to, b.Up, b.Name, b.Address)
		silenced[b.Name] = s.Silenced[b.Name]
	}
	for name, n := range silenced {
		silences.Put(to, float64(n.Times), name)
		ended.Put(to, float64(n.Connections), name)
	}
}
