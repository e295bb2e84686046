package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/cmd/inputflags"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/tree"
	"github.com/vipgen/vipgen/lab"
	"github.com/vipgen/vipgen/lab/bench"
	"github.com/vipgen/vipgen/lab/report"
)

// benchFlags holds the flags of lab bench.
type benchFlags struct {
	input                inputflags.Flags
	programs             lab.Programs
	runs                 int
	seed                 uint64
	scenarios, profiles  []string
	intervals            []time.Duration
	saturate             time.Duration
	clients              int
	realAPI              bool
	jsonFile, htmlReport string
	svgFile              string
	output               command.Format
}

func (f *benchFlags) add(c *cobra.Command) {
	f.input.Add(c)
	addPrograms(c, &f.programs)
}

// addPrograms adds the flags for the programs of a lab.
func addPrograms(c *cobra.Command, p *lab.Programs) {
	c.Flags().StringVar(&p.Agent, "agent", "", "`file` of vipgen-agent (default: next to vipgen, or in PATH)")
	c.Flags().StringVar(&p.CoreDNS, "coredns", "", "`file` of coredns (default: next to vipgen, or in PATH)")
	_, _ = c.MarkFlagFilename("agent"), c.MarkFlagFilename("coredns")
}

// maxClients is the maximum number of clients of each kind at each place.
const maxClients = 100

// addRealAPI adds the flags of labs with real API servers.
func addRealAPI(c *cobra.Command, real *bool, p *lab.Programs) {
	c.Flags().BoolVar(real, "real-apiserver", false, "run etcd and kube-apiserver instead of stand-ins")
	c.Flags().StringVar(&p.Etcd, "etcd", "", "`file` of etcd (default: next to vipgen, or in PATH)")
	c.Flags().StringVar(&p.APIServer, "kube-apiserver", "", "`file` of kube-apiserver (default: next to vipgen, or in PATH)")
}

// findPrograms finds the programs of a lab.
func findPrograms(named lab.Programs, realAPI, routed bool) (lab.Programs, error) {
	p, err := lab.FindPrograms(named, realAPI)
	if err == nil {
		err = p.Check()
	}
	if err == nil {
		err = needCoreDNS(p)
	}
	if err == nil && routed && p.Speaker == "" {
		err = errors.New("vipgen-bgp is neither next to vipgen nor in PATH, and nodes announce VIPs with it: build it with 'make build' in a checkout of vipgen")
	}
	return p, err
}

// needCoreDNS returns an error for a lab whose nodes could not resolve the cluster's names: compute
// nodes reach the API only by name.
func needCoreDNS(p lab.Programs) error {
	if p.CoreDNS == "" {
		return errors.New("coredns is neither next to vipgen nor in PATH, and nodes need the cluster's names: build it with 'make coredns' in a checkout of vipgen, or name it with --coredns")
	}
	return nil
}

func (a *app) benchCommand() *cobra.Command {
	var f benchFlags
	c := &cobra.Command{
		Use:   "bench [install-config.yaml]",
		Short: "Measure what clients see in failures, compared with today's clusters",
		Long: `Build the cluster of an install-config, or a small built-in one, as a lab for each
profile: vipgen's, and the reference, which is what on-premises clusters run today.
Run each scenario on all of them in turn, and print the outage of a client that
requests a VIP every 10ms, and whether there was a split brain.

A line for each run goes to standard error, and the number of the scenario with the
time left: at a terminal in a line that is redrawn. Ctrl-C ends early, prints what was
measured, and gives exit code 3.

Documentation: ` + command.Pages + `lab.md#measure-failures-lab-bench`,
		Example: `  sudo vipgen lab bench --html bench.html --json bench.json
  sudo vipgen lab bench --scenario power-loss,haproxy-hang --runs 9
  sudo vipgen lab bench --scenario power-loss --profile fast,reference --svg failover.svg
  sudo vipgen lab bench --scenario power-loss,planned-stop --profile bgp,fast
  sudo vipgen lab bench --scenario power-loss,backend-power-loss --clients 6
  sudo vipgen lab bench install-config.yaml --profile fast --interval 50ms`,
		Args:              command.Args(0, 1),
		ValidArgsFunction: inputflags.CompleteYAML,
		RunE: func(c *cobra.Command, args []string) error {
			return a.bench(c, args, &f)
		},
	}
	f.add(c)
	flags := c.Flags()
	flags.IntVar(&f.runs, "runs", 5, "`number` of runs of each scenario with each profile")
	flags.Uint64Var(&f.seed, "seed", 1, "`number` that the moments of failures between two advertisements follow from")
	flags.StringSliceVar(&f.scenarios, "scenario", nil, "`names` of the scenarios to measure (default: all)")
	flags.StringSliceVar(&f.profiles, "profile", nil, "`names` of the profiles to measure: fast, virtual, classic, all-nodes, bgp, reference (default: all but all-nodes and bgp)")
	flags.IntVar(&f.clients, "clients", 0, "`number` of watches, of leader elections and of heartbeats on the control plane, on workers and outside, which are measured as well")
	addRealAPI(c, &f.realAPI, &f.programs)
	flags.DurationSliceVar(&f.intervals, "interval", nil, "advertisement intervals to measure as additional profiles: `durations` such as 50ms")
	flags.DurationVar(&f.saturate, "saturate", time.Minute, "`duration` of full load in the scenario saturation")
	flags.StringVar(&f.jsonFile, "json", "", "`file` to write all figures to, as JSON")
	flags.StringVar(&f.htmlReport, "html", "", "`file` to write the report to, as one HTML page with timelines")
	flags.StringVar(&f.svgFile, "svg", "", "`file` to write a picture to, as SVG: the median run of each scenario and profile")
	f.output.Add(c, "text", "json", "html")
	command.Complete(c, "scenario", scenarioNames()...)
	command.Complete(c, "profile", profileNames()...)
	_ = c.MarkFlagFilename("json", "json")
	_ = c.MarkFlagFilename("html", "html")
	_ = c.MarkFlagFilename("svg", "svg")
	return c
}

func scenarioNames() []string {
	return lists.Map(bench.Scenarios(0), func(s bench.Scenario) string { return s.Name })
}

func profileNames() []string {
	return lists.Map(bench.Profiles(), func(p bench.Profile) string { return p.Name })
}

// chosenProfiles returns the profiles of --profile, then those of --interval.
func (f *benchFlags) chosenProfiles() (out []bench.Profile, err error) {
	for _, p := range bench.Profiles() {
		if len(f.profiles) == 0 && !p.OnRequest || slices.Contains(f.profiles, p.Name) {
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

// routed reports whether a profile's VIPs are known to routers by BGP.
func routed(profiles []bench.Profile) bool {
	return slices.ContainsFunc(profiles, func(p bench.Profile) bool { return p.Routed })
}

// benchConfig returns the configuration of all benchmarks. remove removes the directory with the
// clusters' files.
func (a *app) benchConfig(args []string, f *benchFlags, profiles ...bench.Profile) (cfg bench.Config, remove func(), err error) {
	if err := asRoot(); err != nil {
		return cfg, nil, err
	}
	if cfg.Cluster, err = a.demoOr(args, &f.input); err != nil {
		return cfg, nil, err
	}
	if cfg.Programs, err = findPrograms(f.programs, f.realAPI, routed(profiles)); err != nil {
		return cfg, nil, err
	}
	if cfg.Racks, err = lab.Racks(); err != nil {
		return cfg, nil, err
	}
	cfg.Progress = func(line string) { fmt.Fprintln(a.Err, command.SafeLine(line)) }
	cfg.Dir, err = os.MkdirTemp("", "vipgen-bench-")
	return cfg, func() { os.RemoveAll(cfg.Dir) }, err
}

// interruptible returns a context that ends with the first signal to terminate; the second one ends
// the process at once.
func interruptible() (context.Context, func()) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

func (a *app) bench(c *cobra.Command, args []string, f *benchFlags) error {
	profiles, err := f.chosenProfiles()
	if err != nil {
		return command.Usage(c, err)
	}
	scenarios, err := bench.Choose(bench.Scenarios(f.saturate), f.scenarios)
	if err != nil {
		return command.Usage(c, err)
	}
	if len(args) > 0 && routed(profiles) {
		return command.Usagef(c, "--profile %s has a built-in cluster, without an install-config", bench.RoutedName)
	}
	if f.runs < 1 {
		return command.Usagef(c, "--runs %d: expected at least 1", f.runs)
	}
	if f.clients < 0 || f.clients > maxClients {
		return command.Usagef(c, "--clients %d: expected 0 to %d", f.clients, maxClients)
	}
	cfg, remove, err := a.benchConfig(args, f, profiles...)
	if err != nil {
		return err
	}
	defer remove()
	cfg.Profiles, cfg.Scenarios, cfg.Runs, cfg.Seed = profiles, scenarios, f.runs, f.seed
	cfg.Clients, cfg.RealAPI = f.clients, f.realAPI
	progress := newBenchProgress(a.Err)
	cfg.Progress, cfg.Step = progress.line, progress.step
	ctx, stop := interruptible()
	defer stop()
	defer context.AfterFunc(ctx, func() {
		progress.line("interrupted: the labs are removed, then what was measured is printed")
	})()
	origin := report.Origin{Date: time.Now(), Version: command.Version(), Cluster: cfg.Cluster.Config.Spec.Domain, Command: commandLine(c, args)}
	result, err := bench.Run(ctx, cfg)
	progress.end()
	result.Origin = origin
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted: the report has what was measured until then")
	}
	return errors.Join(a.printBench(result, f), err)
}

// printBench writes a report to all requested outputs.
func (a *app) printBench(r *report.Report, f *benchFlags) error {
	errs := []error{
		tree.WriteReport(f.jsonFile, r.WriteJSON),
		tree.WriteReport(f.htmlReport, r.WriteHTML),
		tree.WriteReport(f.svgFile, r.WriteSVG),
	}
	show := map[command.Format]func(io.Writer) error{"text": r.WriteTable, "json": r.WriteJSON, "html": r.WriteHTML}[f.output]
	return errors.Join(append(errs, show(a.Out))...)
}

func (a *app) saturateCommand() *cobra.Command {
	var f benchFlags
	c := &cobra.Command{
		Use:   "saturate [install-config.yaml]",
		Short: "Count spurious failovers under CPU saturation, by advertisement interval",
		Long: `Build the cluster of an install-config, or a small built-in one, as a lab for each
advertisement interval, keep all cores of this machine busy with twice as many
programs of ordinary priority, and count how often a VIP moved without a failure. All
nodes share the cores.`,
		Example:           "  sudo vipgen lab saturate --intervals 20ms,50ms,100ms --duration 2m",
		Args:              command.Args(0, 1),
		ValidArgsFunction: inputflags.CompleteYAML,
		RunE: func(c *cobra.Command, args []string) error {
			return a.saturate(c, args, &f)
		},
	}
	f.add(c)
	flags := c.Flags()
	flags.DurationSliceVar(&f.intervals, "intervals", []time.Duration{20 * time.Millisecond, 30 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond}, "advertisement intervals to measure, as `durations`")
	flags.DurationVar(&f.saturate, "duration", 2*time.Minute, "`duration` of full load with each interval")
	f.output.Add(c, "text", "json")
	return c
}

func (a *app) saturate(c *cobra.Command, args []string, f *benchFlags) error {
	for _, interval := range f.intervals {
		if _, err := bench.Custom(interval); err != nil {
			return command.Usagef(c, "--intervals: %w", err)
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
	return errors.Join(command.Show(a.Out, f.output, "LabSaturation", items[bench.Steadiness]{all}, saturationText), err)
}

func saturationText(out io.Writer, all items[bench.Steadiness]) {
	w := command.Table(out)
	fmt.Fprintln(w, "INTERVAL\tSPURIOUS FAILOVERS\tSPLIT BRAIN")
	for _, s := range all.Items {
		fmt.Fprintf(w, "%s\t%d\t%s\n", command.Millis(s.Interval), s.Moves, command.Millis(s.Two))
	}
	w.Flush()
}
