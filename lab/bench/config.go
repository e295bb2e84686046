package bench

import (
	"log/slog"
	"time"

	"github.com/vipgen/vipgen/lab"
	"github.com/vipgen/vipgen/render"
)

// Config configures a benchmark.
type Config struct {
	Cluster *render.Cluster
	// Racks is the cluster of profiles whose VIPs routers know by BGP ([lab.Racks]).
	Racks    *render.Cluster
	Programs lab.Programs
	// Dir is a directory for temporary files of the clusters.
	Dir       string
	Profiles  []Profile
	Scenarios []Scenario
	// Runs is the number of runs of each scenario with each profile.
	Runs int
	// Seed determines the phases of the advertisement interval at which faults start.
	Seed uint64
	// Clients is the number of clients of each kind of lab/client at each place, in scenarios that
	// probe the API VIP; 0 for none.
	Clients int
	// RealAPI selects real API servers and etcd instead of stand-ins.
	RealAPI bool
	// Saturate is the time for which scenario saturation keeps all cores busy.
	Saturate time.Duration
	// Log receives the logs of the clusters; it may be nil.
	Log *slog.Logger
	// Progress is called with a description of each step; it may be nil.
	Progress func(string)
	// Step is called before each run of a scenario; it may be nil.
	Step func(Step)
}

// cluster returns the cluster of a profile.
func (c *Config) cluster(p Profile) *render.Cluster {
	if p.Routed {
		return c.Racks
	}
	return c.Cluster
}

func (c *Config) logger() *slog.Logger {
	if c.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Log
}
