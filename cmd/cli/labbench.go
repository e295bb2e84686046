package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/cmd/tree"
	"github.com/vipgen/vipgen/lab"
	"github.com/vipgen/vipgen/lab/bench"
	"github.com/vipgen/vipgen/lab/report"
)

// benchFlags say what to measure.
type benchFlags struct {
	input                inputFlags
	programs             lab.Programs
	runs                 int
	seed                 uint64
	scenarios, profiles  []string
	intervals            []time.Duration
	saturate             time.Duration
	jsonFile, htmlReport string
	output               outputFlag
}

func (f *benchFlags) add(c *cobra.Command) {
	f.input.add(c)
	flags := c.Flags()
	flags.StringVar(&f.programs.Agent, "agent", "", "`file` of vipgen-agent")
	flags.StringVar(&f.programs.CoreDNS, "coredns", "", "`file` of coredns")
}

func (a *app) labBenchCommand() *cobra.Command {
	var f benchFlags
	c := &cobra.Command{
		Use:   "bench [install-config.yaml]",
		Short: "Measure what clients see of failures, beside what clusters run today",
		Long: `Build the cluster of an install-config, or a small one that is built in, as a lab
for each profile: vipgen's own, and the reference, which is what on-premises clusters
run today. Have each scenario happen to all of them in turn, and say what a client
saw that asked for a VIP every 10 ms, and whether two nodes ever held it at once.

A line for each run goes to standard error. Ctrl-C ends early, and what was measured
is printed. docs/lab-bench.md says what each scenario is and how to read the table.`,
		Example: `  sudo vipgen lab bench --html bench.html --json bench.json
  sudo vipgen lab bench --scenario power-loss,haproxy-hang --runs 9
  sudo vipgen lab bench install-config.yaml --profile fast --interval 50ms`,
		Args:              args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: completeYAML,
		RunE: func(c *cobra.Command, args []string) error {
			return a.labBench(c, args, &f)
		},
	}
	f.add(c)
	flags := c.Flags()
	flags.IntVar(&f.runs, "runs", 5, "`times` that each scenario happens to each profile")
	flags.Uint64Var(&f.seed, "seed", 1, "`number` that decides at which moments between two adverts things happen")
	flags.StringSliceVar(&f.scenarios, "scenario", nil, "`names` of the scenarios to measure (default: all)")
	flags.StringSliceVar(&f.profiles, "profile", nil, "`names` of the profiles to measure: fast, virtual, classic, reference (default: all)")
	flags.DurationSliceVar(&f.intervals, "interval", nil, "`times` between adverts to measure as profiles of their own, such as 50ms")
	flags.DurationVar(&f.saturate, "saturate", time.Minute, "for how `long` the scenario saturation keeps all cores busy")
	flags.StringVar(&f.jsonFile, "json", "", "`file` to write all figures to, as JSON")
	flags.StringVar(&f.htmlReport, "html", "", "`file` to write the report to, as one HTML page with timelines")
	f.output.add(c, "text", "json")
	complete(c, "scenario", scenarioNames()...)
	complete(c, "profile", profileNames()...)
	_ = c.MarkFlagFilename("json", "json")
	_ = c.MarkFlagFilename("html", "html")
	return c
}

func scenarioNames() (names []string) {
	for _, s := range bench.Scenarios(0) {
		names = append(names, s.Name)
	}
	return names
}

func profileNames() (names []string) {
	for _, p := range bench.Profiles() {
		names = append(names, p.Name)
	}
	return names
}

// chosenProfiles are those of the names, then those of the intervals.
func (f *benchFlags) chosenProfiles() (out []bench.Profile, err error) {
	for _, p := range bench.Profiles() {
		if len(f.profiles) == 0 || slices.Contains(f.profiles, p.Name) {
			out = append(out, p)
		}
	}
	for _, name := range f.profiles {
		if names := profileNames(); !slices.Contains(names, name) {
			return nil, fmt.Errorf("--profile %s: expected %s", name, strings.Join(names, ", "))
		}
	}
	for _, interval := range f.intervals {
		p, err := bench.Custom(interval)
		if err != nil {
			return nil, fmt.Errorf("--interval: %w", err)
		}
		out = append(out, p)
	}
	return out, nil
}

// config is what all benchmarks of the lab need. What it returns removes the
// directory with the clusters' files.
func (a *app) benchConfig(args []string, f *benchFlags) (cfg bench.Config, remove func(), err error) {
	if err := asRoot(); err != nil {
		return cfg, nil, err
	}
	if cfg.Cluster, err = a.demoOr(args, &f.input); err != nil {
		return cfg, nil, err
	}
	if cfg.Programs, err = lab.FindPrograms(f.programs, false); err != nil {
		return cfg, nil, err
	}
	if cfg.Programs.CoreDNS == "" {
		return cfg, nil, errors.New("coredns is not found beside vipgen or in PATH, and compute nodes need its names: build it with `make tools`, or name it with --coredns")
	}
	cfg.Progress = func(line string) { fmt.Fprintln(a.err, safeLine(line)) }
	cfg.Dir, err = os.MkdirTemp("", "vipgen-bench-")
	return cfg, func() { os.RemoveAll(cfg.Dir) }, err
}

// interruptible ends with the first signal that asks the program to; the next one
// ends it at once.
func interruptible() (context.Context, func()) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

func (a *app) labBench(c *cobra.Command, args []string, f *benchFlags) error {
	profiles, err := f.chosenProfiles()
	if err != nil {
		return usage(c, err)
	}
	scenarios, err := bench.Choose(bench.Scenarios(f.saturate), f.scenarios)
	if err != nil {
		return usage(c, err)
	}
	if f.runs < 1 {
		return usage(c, fmt.Errorf("--runs %d: expected 1 at least", f.runs))
	}
	cfg, remove, err := a.benchConfig(args, f)
	if err != nil {
		return err
	}
	defer remove()
	cfg.Profiles, cfg.Scenarios, cfg.Runs, cfg.Seed = profiles, scenarios, f.runs, f.seed
	ctx, stop := interruptible()
	defer stop()
	result, err := bench.Run(ctx, cfg)
	if errors.Is(err, context.Canceled) {
		err = errors.New("ended early: the report has what was measured until then")
	}
	return errors.Join(a.printBench(result, f), err)
}

// printBench writes a report to wherever it was asked for.
func (a *app) printBench(r *report.Report, f *benchFlags) error {
	errs := []error{
		writeReport(f.jsonFile, r.WriteJSON),
		writeReport(f.htmlReport, r.WriteHTML),
	}
	show := r.WriteTable
	if f.output == "json" {
		show = r.WriteJSON
	}
	return errors.Join(append(errs, show(a.out))...)
}

func writeReport(name string, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	return tree.WriteFile(name, b.Bytes())
}

func (a *app) labSaturateCommand() *cobra.Command {
	var f benchFlags
	c := &cobra.Command{
		Use:   "saturate [install-config.yaml]",
		Short: "Count needless failovers while all cores are busy, by advert interval",
		Long: `Build the cluster of an install-config, or a small one that is built in, as a lab
once for each interval between adverts, keep all cores of this machine busy for a
while with twice as many programs of ordinary priority, and count how often a VIP
went to another node although nothing was wrong. All nodes share the cores.`,
		Example:           "  sudo vipgen lab saturate --intervals 20ms,50ms,100ms --duration 2m",
		Args:              args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: completeYAML,
		RunE: func(c *cobra.Command, args []string) error {
			return a.labSaturate(c, args, &f)
		},
	}
	f.add(c)
	flags := c.Flags()
	flags.DurationSliceVar(&f.intervals, "intervals", []time.Duration{20 * time.Millisecond, 30 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond}, "`times` between adverts to try")
	flags.DurationVar(&f.saturate, "duration", 2*time.Minute, "for how `long` to keep all cores busy with each")
	f.output.add(c, "text", "json")
	return c
}

func (a *app) labSaturate(c *cobra.Command, args []string, f *benchFlags) error {
	for _, interval := range f.intervals {
		if _, err := bench.Custom(interval); err != nil {
			return usage(c, fmt.Errorf("--intervals: %w", err))
		}
	}
	cfg, remove, err := a.benchConfig(args, f)
	if err != nil {
		return err
	}
	defer remove()
	ctx, stop := interruptible()
	defer stop()
	all, err := bench.Saturate(ctx, cfg, f.intervals, f.saturate)
	if f.output == "json" {
		return errors.Join(a.printJSON(all), err)
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "INTERVAL\tNEEDLESS FAILOVERS\tTWO HOLDERS")
	for _, s := range all {
		fmt.Fprintf(w, "%v ms\t%d\t%v ms\n", s.Interval, s.Moves, s.Two)
	}
	return errors.Join(w.Flush(), err)
}
