package agentcli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/agent/keepalived"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/liveness"
)

func (a *app) probeCommand() *cobra.Command {
	return command.Group(&cobra.Command{
		Use:     "probe",
		Short:   "Liveness probe: check whether a job of this container and its daemon work",
		Example: "  vipgen-agent probe keepalived",
	}, a.probe("coredns", "Check whether CoreDNS answers for the API's name", probeCoreDNS),
		a.probe("firewall", "Check whether the firewall job is alive", nil),
		a.probe("haproxy", "Check whether HAProxy answers", probeHAProxy),
		a.probe("keepalived", "Check whether keepalived answers, or need not run", keepalived.Probe),
		a.probe("mdns", "Check whether the mdns job answers for this node's name", a.probeMDNS))
}

// probeTime is less than what kubelet gives a probe of the pods, so that it is
// the probe that says what is wrong.
const probeTime = 4 * time.Second

// probe makes the command that asks a job, and its daemon if it has one.
func (a *app) probe(name, short string, ask func(context.Context, *state.Dir, string) error) *cobra.Command {
	return &cobra.Command{
		Use:     name,
		Short:   short,
		Long:    short + ". It runs in the container of the job.\n\nExit code 1: it does not work.",
		Example: "  vipgen-agent probe " + name,
		Args:    command.Args(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := state.Open(a.below(v1alpha1.RunDir))
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeoutCause(c.Context(), probeTime, errors.New("waited for "+probeTime.String()))
			defer cancel()
			err = liveness.Ask(ctx, a.below(v1alpha1.JobDir(name)), name)
			if err == nil && ask != nil {
				err = ask(ctx, dir, a.root)
			}
			if err != nil {
				a.log.Error("not alive", "daemon", name, "error", err)
				return command.ErrFinding
			}
			return nil
		},
	}
}
