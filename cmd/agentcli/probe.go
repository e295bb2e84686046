package agentcli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/agent/alive"
	"github.com/vipgen/vipgen/agent/keepalived"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

func (a *app) probeCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:     "probe",
		Short:   "Find out whether a job of this container and its daemon work, for a liveness probe",
		Example: "  vipgen-agent probe keepalived",
	}, a.probe("coredns", "Find out whether CoreDNS answers for the API's name", probeCoreDNS),
		a.probe("firewall", "Find out whether the firewall job goes on", nil),
		a.probe("haproxy", "Find out whether HAProxy answers", probeHAProxy),
		a.probe("keepalived", "Find out whether keepalived answers, or is not to run", keepalived.Probe),
		a.probe("mdns", "Find out whether the mdns job answers for this node's name", a.probeMDNS))
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
		Args:    args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := state.Open(a.below(v1alpha1.RunDir))
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeoutCause(c.Context(), probeTime, errors.New("waited for "+probeTime.String()))
			defer cancel()
			err = alive.Ask(ctx, a.below(v1alpha1.JobDir(name)), name)
			if err == nil && ask != nil {
				err = ask(ctx, dir, a.root)
			}
			if err != nil {
				a.log.Error("not alive", "daemon", name, "error", err)
				return errFinding
			}
			return nil
		},
	}
}
