package firewall

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/vipgen/vipgen/agent/monitor"
)

var (
	inPlace   = monitor.Gauge("vipgen_redirect_in_place", "Whether every API VIP is redirected to HAProxy, in both families and both hooks (1) or not (0).")
	toHAProxy = monitor.Gauge("vipgen_redirect_vip", "1 for every VIP that is redirected to HAProxy.", "vip")
	own       = monitor.Gauge("vipgen_redirect_own_connections", "Whether the node's own connections to the API VIPs go to its HAProxy, wherever the VIPs are (1) or not (0).")
	wanted    = monitor.Gauge("vipgen_redirect_wanted", "Whether HAProxy serves, so that the redirect should be in place (1) or not (0).")
	since     = monitor.Gauge("vipgen_redirect_changed_timestamp_seconds", "When the redirect was placed or withdrawn last, in seconds since 1970.")
	restored  = monitor.Counter("vipgen_redirect_restored_total", "How often something else had removed or changed the redirect and it was restored.")
)

// Describe implements prometheus.Collector.
func (j *Job) Describe(to chan<- *prometheus.Desc) {
	monitor.Families{inPlace, toHAProxy, own, wanted, since, restored}.Describe(to)
}

// Collect implements prometheus.Collector with the state published last.
func (j *Job) Collect(to chan<- prometheus.Metric) {
	p := j.last.Load()
	if p == nil {
		return
	}
	inPlace.PutBool(to, p.InPlace)
	for _, vip := range p.VIPs {
		toHAProxy.Put(to, 1, vip.String())
	}
	own.PutBool(to, p.Own)
	wanted.PutBool(to, p.Serving)
	since.PutTime(to, p.Since)
	restored.Put(to, float64(p.Restored))
}
