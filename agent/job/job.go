// Package job holds what the jobs of a node have in common: their registration with the
// agent's command line, and the order in which they end when all are stopped at once.
//
// A job is a directory below agent with a Kind in its kind.go, and a line in the
// registry, cmd/agentcli/jobs.go. Nothing else names it.
package job

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/nodelist"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// Job is the work of a long-running command. It exports its metrics as a Collector.
type Job interface {
	prometheus.Collector
	// Run runs the job until ctx ends.
	Run(ctx context.Context) error
	// Stuck returns an error if one of its loops hangs.
	Stuck() error
	// Health returns a problem of the job, nil if it is healthy.
	Health(ctx context.Context) error
}

// Environment is the environment of a job and its probe.
type Environment struct {
	// Root is the root of the host's file system.
	Root string
	// State is the directory where jobs publish their states, each under its name.
	State *state.Dir
	Log   *slog.Logger
	// Source provides the facts of the node, Checks counts the checks of its services.
	// Both are for jobs, not for probes.
	Source *facts.Source
	Checks *health.Metrics
}

// Kind describes a job for the command line.
type Kind struct {
	// Name is the name of the job's command, of its directory in v1alpha1.RunDir and of
	// its published state.
	Name string
	// Short, Long and Example are the help of its command.
	Short, Long, Example string
	// Port returns the loopback port of the job's metrics and health.
	Port func(v1alpha1.Ports) int
	// Conf is the path of the configuration of the job's daemon, next to which it stores
	// the last known state of the cluster. Such a job follows the list of nodes. It is
	// empty for a job that needs no other nodes.
	Conf string
	// Kept is the path of the copy of the last valid cluster.yaml for a job without Conf;
	// empty for none.
	Kept string
	// Watch sets what the job needs of the API besides the nodes; nil for nothing.
	Watch func(role string, o *nodelist.Options)
	New   func(Environment) Job
	// Probed describes what `probe` checks.
	Probed string
	// Probe checks the job's daemon after the job itself has answered; nil for none.
	Probe func(context.Context, Environment) error
	// Summary returns the published state of the job, for JSON, and as rows of a table,
	// the first of which begins with the job's name. published is nil, and the row
	// reports it, if the job does not run.
	Summary func(*state.Dir) (published any, rows [][]string, err error)
}

// Summarize returns a Summary that uses rows for the published state.
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
