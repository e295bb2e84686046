package cli

import (
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/lab/bench"
)

func (a *app) labStallCommand() *cobra.Command {
	var f benchFlags
	var how bench.Stalls
	c := &cobra.Command{
		Use:   "stall [install-config.yaml]",
		Short: "Stop a node for a while, as a hypervisor does, and count failovers",
		Long: `Build the cluster of an install-config, or a small one that is built in, as a lab
for each profile, and stop the holder of the API VIP for a while: all of its
containers at one moment, by their control group, and its API server. Say for each
length in how many runs a VIP moved, for how long a client got no answer, and for how
long two nodes had a VIP once the holder went on.

docs/timing.md says what was measured, and what a lab cannot show of a hypervisor.`,
		Example: `  sudo vipgen lab stall --profile virtual --lengths 500ms --runs 20
  sudo vipgen lab stall --backup --drop`,
		Args:              args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: completeYAML,
		RunE: func(c *cobra.Command, args []string) error {
			return a.labStall(c, args, &f, how)
		},
	}
	f.add(c)
	flags := c.Flags()
	flags.DurationSliceVar(&how.Lengths, "lengths", milliseconds(50, 100, 150, 200, 300, 400, 500, 600, 700, 800, 1000), "`times` for which the node stands still")
	flags.BoolVar(&how.Backup, "backup", false, "stop another control-plane node in place of the holder")
	flags.BoolVar(&how.Drop, "drop", false, "lose packets that come meanwhile, in place of keeping them")
	flags.StringSliceVar(&f.profiles, "profile", []string{string(v1alpha1.ProfileFast), string(v1alpha1.ProfileVirtual)}, "`names` of the profiles to measure: fast, virtual, classic, reference")
	flags.DurationSliceVar(&f.intervals, "interval", nil, "`times` between adverts to measure as profiles of their own, such as 100ms")
	flags.IntVar(&f.runs, "runs", 5, "`times` that the node stands still for each length")
	flags.Uint64Var(&f.seed, "seed", 1, "`number` that decides at which moments between two adverts it begins")
	f.output.add(c, "text", "json")
	complete(c, "profile", profileNames()...)
	return c
}

func milliseconds(list ...int) (out []time.Duration) {
	for _, ms := range list {
		out = append(out, time.Duration(ms)*time.Millisecond)
	}
	return out
}

func (a *app) labStall(c *cobra.Command, args []string, f *benchFlags, how bench.Stalls) error {
	profiles, err := f.chosenProfiles()
	if err != nil {
		return usage(c, err)
	}
	for _, length := range how.Lengths {
		if length <= 0 {
			return usage(c, fmt.Errorf("--lengths %v: expected more than nothing", length))
		}
	}
	if f.runs < 1 {
		return usage(c, fmt.Errorf("--runs %d: expected 1 at least", f.runs))
	}
	cfg, remove, err := a.benchConfig(args, f)
	if err != nil {
		return err
	}
	defer remove()
	cfg.Profiles, cfg.Runs, cfg.Seed = profiles, f.runs, f.seed
	ctx, stop := interruptible()
	defer stop()
	all, err := bench.Stall(ctx, cfg, how)
	if f.output == "json" {
		return errors.Join(a.printJSON(all), err)
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PROFILE\tSTALL\tREALLY\tMOVED\tNO ANSWER\tREQUESTS LOST\tTWO HOLDERS AFTER")
	for _, s := range all {
		fmt.Fprintf(w, "%s\t%.0f ms\t%.0f ms\t%d of %d\t%.0f ms\t%d\t%.0f ms\n", s.Profile, s.Length, s.Stood, s.Moved, s.Runs, s.Waited, s.Lost, s.Two)
	}
	return errors.Join(w.Flush(), err)
}
