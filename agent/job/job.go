// Package job is what the jobs of a node have in common: how the agent's command line
// gets to know each, and the order in which they end when all are told to at once.
//
// A job is a folder below agent, with a Kind in its kind.go, and a line in the registry,
// cmd/agentcli/jobs.go. Nothing else names it.
package job

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/nodes"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// Job is what a long-running command runs. It shows its metrics as a Collector.
type Job interface {
	prometheus.Collector
	// Run runs the job until ctx ends.
	Run(ctx context.Context) error
	// Stuck says which of its loops does not turn any more; nil if all do.
	Stuck() error
	// Health says what is wrong with the job, nil if it works as it should.
	Health(ctx context.Context) error
}

// Environment is what a job is made with, and a probe of it runs with.
type Environment struct {
	// Root is where the host's file system is.
	Root string
	// State is where jobs say what they do; the job publishes under its name.
	State *state.Dir
	Log   *slog.Logger
	// Source has the facts of the node, and Checks measures the checks of its services.
	// Both are for a job, not for a probe.
	Source *facts.Source
	Checks *health.Metrics
}

// Kind is a job as the command line knows it.
type Kind struct {
	// Name is that of the job's command, of its directory in v1alpha1.RunDir and of what
	// it publishes.
	Name string
	// Short, Long and Example are the help of its command.
	Short, Long, Example string
	// Port is where the job serves metrics and health on loopback.
	Port func(v1alpha1.Ports) int
	// Conf is the path of the configuration of the job's daemon, beside which it keeps
	// what it knows of the cluster over restarts. Such a job follows the list of nodes.
	// It is empty for a job that needs no other nodes.
	Conf string
	// Kept is the path of the copy of the last good cluster.yaml of a job without Conf;
	// empty for none.
	Kept string
	// Watch says what the job needs of the API besides the nodes; nil for nothing.
	Watch func(role string, o *nodes.Options)
	// New makes the job.
	New func(Environment) Job
	// Probed is what `probe` finds out of the job.
	Probed string
	// Probe asks the job's daemon for something that only a working one does, when the
	// job itself has answered; nil where there is none.
	Probe func(context.Context, Environment) error
	// Summary reads what the job has published: for JSON, and as rows of a table, the
	// first of which begins with the job's name. Published is nil, and rows say so, for a
	// job that does not run.
	Summary func(*state.Dir) (published any, rows [][]string, err error)
}

// Summarize makes a Summary of rows for what a job publishes.
func Summarize[T state.Job](rows func(*T) [][]string) func(*state.Dir) (any, [][]string, error) {
	return func(dir *state.Dir) (any, [][]string, error) {
		s, err := state.Read[T](dir)
		switch {
		case err != nil:
			return nil, nil, err
		case s == nil:
			return nil, [][]string{{(*new(T)).JobName(), "does not run"}}, nil
		}
		return s, rows(s), nil
	}
}
