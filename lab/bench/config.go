package bench

import (
	"log/slog"
	"time"

	"github.com/vipgen/vipgen/lab"
	"github.com/vipgen/vipgen/render"
)

// Config says what to measure.
type Config struct {
	Cluster  *render.Cluster
	Programs lab.Programs
	// Dir is a directory for the files of the clusters, which are removed.
	Dir       string
	Profiles  []Profile
	Scenarios []Scenario
	// Runs is how often each scenario happens to each profile.
	Runs int
	// Seed decides at which moments between two adverts things happen.
	Seed uint64
	// Clients is how many clients of each kind of lab/client there are at each place during
	// scenarios in which the API VIP is asked; 0 for none.
	Clients int
	// RealAPI asks for real API servers and etcd; else they are stand-ins.
	RealAPI bool
	// Saturate is how long all cores are kept busy by the scenario of that name.
	Saturate time.Duration
	// Log gets what happens in the clusters; nil for nobody.
	Log *slog.Logger
	// Progress is told what is done now; it may be nil.
	Progress func(string)
	// Step is told of each run of a scenario before it begins; it may be nil.
	Step func(Step)
}

func (c *Config) logger() *slog.Logger {
	if c.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Log
}
