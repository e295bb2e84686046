package cli

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/cmd/inputflags"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/lab/bench"
)

func (a *app) stallCommand() *cobra.Command {
	var f benchFlags
	var how bench.Stalls
	c := &cobra.Command{
		Use:   "stall [install-config.yaml]",
		Short: "Pause a node, as a hypervisor does, and count failovers",
		Long: `Build the cluster of an install-config, or a small built-in one, as a lab for each
profile, and pause the holder of the API VIP: all of its containers at one moment, by
their control group, and its API server. Print for each length the number of runs in
which a VIP moved, the outage of a client, and for how long there was a split brain
once the holder resumed.

Documentation: ` + command.Pages + `concepts.md#virtual-machines`,
		Example: `  sudo vipgen lab stall --profile virtual --lengths 500ms --runs 20
  sudo vipgen lab stall --backup --drop`,
		Args:              command.Args(0, 1),
		ValidArgsFunction: inputflags.CompleteYAML,
		RunE: func(c *cobra.Command, args []string) error {
			return a.stall(c, args, &f, how)
		},
	}
	f.add(c)
	flags := c.Flags()
	flags.DurationSliceVar(&how.Lengths, "lengths", milliseconds(50, 100, 150, 200, 300, 400, 500, 600, 700, 800, 1000), "`durations` of the pause")
	flags.BoolVar(&how.Backup, "backup", false, "pause another control-plane node instead of the holder")
	flags.BoolVar(&how.Drop, "drop", false, "drop packets that arrive during the pause, instead of queuing them")
	flags.StringSliceVar(&f.profiles, "profile", []string{string(v1alpha1.ProfileFast), string(v1alpha1.ProfileVirtual)}, "`names` of the profiles to measure: fast, virtual, classic, all-nodes, reference")
	flags.DurationSliceVar(&f.intervals, "interval", nil, "advertisement intervals to measure as additional profiles: `durations` such as 100ms")
	flags.IntVar(&f.runs, "runs", 5, "`number` of pauses of each length")
	flags.Uint64Var(&f.seed, "seed", 1, "`number` that the moments of pauses between two advertisements follow from")
	f.output.Add(c, "text", "json")
	command.Complete(c, "profile", profileNames()...)
	return c
}

func milliseconds(list ...int) (out []time.Duration) {
	return lists.Map(list, func(ms int) time.Duration { return time.Duration(ms) * time.Millisecond })
}

func (a *app) stall(c *cobra.Command, args []string, f *benchFlags, how bench.Stalls) error {
	profiles, err := f.chosenProfiles()
	if err != nil {
		return command.Usage(c, err)
	}
	if routed(profiles) {
		return command.Usagef(c, "--profile %s: with VIPs by BGP there is no holder to pause", bench.RoutedName)
	}
	for _, length := range how.Lengths {
		if length <= 0 {
			return command.Usagef(c, "--lengths %v: expected positive durations", length)
		}
	}
	if f.runs < 1 {
		return command.Usagef(c, "--runs %d: expected at least 1", f.runs)
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
	return errors.Join(command.Show(a.Out, f.output, "LabStalls", items[bench.Stalled]{all}, stallText), err)
}

// items holds the measurements of lab bench, in order.
type items[T any] struct {
	Items []T `json:"items"`
}

func stallText(out io.Writer, all items[bench.Stalled]) {
	w := command.Table(out)
	fmt.Fprintln(w, "PROFILE\tPAUSE\tMEASURED\tMOVED\tOUTAGE\tREQUESTS LOST\tSPLIT BRAIN")
	for _, s := range all.Items {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d of %d\t%s\t%d\t%s\n", s.Profile, command.Millis(s.Length), command.Millis(s.Stood), s.Moved, s.Runs, command.Millis(s.Waited), s.Lost, command.Millis(s.Two))
	}
	w.Flush()
}
