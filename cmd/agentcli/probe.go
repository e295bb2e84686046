package agentcli

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/agent/job"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/liveness"
	"github.com/vipgen/vipgen/internal/liveness/early"
)

func (a *app) probeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "probe",
		Short:   "Liveness probe: check whether a job of this container and its daemon work",
		Example: "  vipgen-agent probe keepalived",
	}
	return command.Group(c, lists.Map(jobs, a.probe)...)
}

// probeTime is less than kubelet's time-out of the pods' probes, so that the probe can
// report the problem.
const probeTime = 4 * time.Second

// probe returns the command that probes a job, and its daemon if it has one.
func (a *app) probe(k job.Kind) *cobra.Command {
	short := "Check " + k.Probed
	return &cobra.Command{
		Use:     k.Name,
		Short:   short,
		Long:    short + ". It runs in the container of the job.\n\nExit code 1: it does not work.",
		Example: "  vipgen-agent probe " + k.Name,
		Args:    command.Args(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := state.Open(a.below(v1alpha1.RunDir))
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeoutCause(c.Context(), probeTime, errors.New("waited for "+probeTime.String()))
			defer cancel()
			err = liveness.Ask(ctx, a.below(v1alpha1.JobDir(k.Name)), k.Name)
			if err == nil && k.Probe != nil {
				err = k.Probe(ctx, job.Environment{Root: a.root, State: dir, Log: a.log})
			}
			if err != nil {
				a.log.Error("not alive", "daemon", k.Name, "error", err)
				return command.ErrFinding
			}
			return nil
		},
	}
}

// alive returns early.Alive if a probe on the command line would succeed without logging
// anything.
func (t task) alive(ctx context.Context) string {
	if t.job.Stuck() != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, early.Patience*time.Millisecond)
	defer cancel()
	var logged bytes.Buffer
	e := job.Environment{Root: t.env.Root, State: t.env.State, Log: slog.New(slog.NewTextHandler(&logged, nil))}
	if t.Probe != nil && t.Probe(ctx, e) != nil || logged.Len() > 0 {
		return ""
	}
	return early.Alive
}
