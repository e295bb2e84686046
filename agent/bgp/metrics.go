package bgp

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/vipgen/vipgen/agent/monitor"
)

var (
	announced   = monitor.Gauge("vipgen_bgp_announced", "Whether this node announces the VIP to routers (1) or not (0).", "group", "vip")
	preference  = monitor.Gauge("vipgen_bgp_preference", "Preference with which this node announces the VIP: routers use the nodes with the lowest. There is no value while it does not.", "group", "vip")
	established = monitor.Gauge("vipgen_bgp_session_established", "Whether the BGP session with the router is established (1) or not (0).", "peer")
	bfdUp       = monitor.Gauge("vipgen_bgp_bfd_up", "Whether BFD with the router is up (1) or not (0); there is no value without BFD.", "peer")
	failing     = monitor.Gauge("vipgen_bgp_problem", "Whether a problem prevents announcements of VIPs (1) or none does (0).")
)

// Describe implements prometheus.Collector.
func (j *Job) Describe(to chan<- *prometheus.Desc) {
	monitor.Families{announced, preference, established, bfdUp, failing}.Describe(to)
}

// Collect implements prometheus.Collector with the state published last.
func (j *Job) Collect(to chan<- prometheus.Metric) {
	s := j.last.Load()
	if s == nil {
		return
	}
	failing.PutBool(to, s.Problem != "")
	for _, v := range s.VIPs {
		announced.PutBool(to, v.Announced, v.Group, v.VIP.String())
		if v.Announced {
			preference.Put(to, float64(v.Preference), v.Group, v.VIP.String())
		}
	}
	for _, p := range s.Peers {
		established.PutBool(to, p.Established(), p.Name())
		if p.BFD != "" {
			bfdUp.PutBool(to, p.BFD == "up", p.Name())
		}
	}
}
