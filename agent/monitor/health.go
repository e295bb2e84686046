package monitor

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// fresh is how long an answer counts: however many ask, the daemon is not
// bothered more often.
const fresh = time.Second

// patience is how long a job may take to find out how it is.
const patience = 5 * time.Second

// Own are the families that a Server shows for every job.
var Own = Families{healthy, clock, buildInfo}

var (
	clock     = Gauge("vipgen_clock_timestamp_seconds", "The node's clock when the metrics were read, in seconds since 1970.")
	buildInfo = Gauge("vipgen_build_info", "1 for the version of the agent, and the commit that it was built from.", "version", "revision")
	healthy   = Gauge("vipgen_healthy", "Whether the job is healthy (1) or not (0): what /healthz answers.")
)

// condition remembers for a moment how a job is.
type condition struct {
	ask               func(context.Context) error
	version, revision string // of the agent

	mu    sync.Mutex
	asked time.Time
	err   error
}

// get says how the job is; nil is well. A job that cannot say it in time is not.
func (c *condition) get() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.asked.IsZero() && time.Since(c.asked) < fresh {
		return c.err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c.err = c.ask(ctx)
	c.asked = time.Now()
	return c.err
}

// Describe is part of prometheus.Collector.
func (c *condition) Describe(to chan<- *prometheus.Desc) { Own.Describe(to) }

// Collect is part of prometheus.Collector.
func (c *condition) Collect(to chan<- prometheus.Metric) {
	clock.PutTime(to, time.Now()) // first: the job may take its time
	buildInfo.Put(to, 1, c.version, c.revision)
	healthy.PutBool(to, c.get() == nil)
}
