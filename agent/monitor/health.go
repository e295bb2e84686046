package monitor

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// fresh is how long a result counts, so that many requests do not load the daemon.
const fresh = time.Second

// patience bounds the time of a job's health check.
const patience = 5 * time.Second

// Own are the families that a Server exports for every job.
var Own = Families{healthy, clock, buildInfo}

var (
	clock     = Gauge("vipgen_clock_timestamp_seconds", "The node's clock when the metrics were read, in seconds since 1970.")
	buildInfo = Gauge("vipgen_build_info", "1 for the version of the agent, and the commit that it was built from.", "version", "revision")
	healthy   = Gauge("vipgen_healthy", "Whether the job is healthy (1) or not (0): what /healthz answers.")
)

type condition struct {
	ask               func(context.Context) error
	version, revision string // of the agent

	mu    sync.Mutex
	asked time.Time
	err   error
}

// get returns the health of the job, nil if healthy. A check that times out is an error.
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

// Describe implements prometheus.Collector.
func (c *condition) Describe(to chan<- *prometheus.Desc) { Own.Describe(to) }

// Collect implements prometheus.Collector.
func (c *condition) Collect(to chan<- prometheus.Metric) {
	clock.PutTime(to, time.Now()) // first: the health check may take a while
	buildInfo.Put(to, 1, c.version, c.revision)
	healthy.PutBool(to, c.get() == nil)
}
