package mdns

import (
	"context"
	"errors"
	"time"

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

// stuckAfter is more than the 30 seconds after which addresses are polled without a
// notification.
const stuckAfter = 2 * time.Minute

// Stuck returns an error if the loop that follows addresses hangs, for the job's liveness
// probe.
func (j *Job) Stuck() error { return j.watchdog.Stuck("the loop that follows addresses", stuckAfter) }

// Health returns a problem of the job for /healthz.
func (j *Job) Health(context.Context) error {
	if err := j.Stuck(); err != nil {
		return err
	}
	p := j.last.Load()
	if p == nil {
		return errors.New("the job has not begun")
	}
	if !p.Announced {
		return errors.New("the node's name is not announced: " + p.Why)
	}
	return nil
}
