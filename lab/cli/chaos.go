package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/cmd/inputflags"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/lab"
	"github.com/vipgen/vipgen/lab/chaos"
	"github.com/vipgen/vipgen/render"
)

// chaosFlags holds the flags of lab chaos.
type chaosFlags struct {
	input    inputflags.Flags
	programs lab.Programs
	seed     uint64
	duration time.Duration
	profile  string
	announce string
	faults   []string
	atOnce   int
	round    int
	slack    time.Duration
	logs     string
	dryRun   bool
	output   command.Format
}

func (a *app) chaosCommand() *cobra.Command {
	var f chaosFlags
	c := &cobra.Command{
		Use:   "chaos [install-config.yaml]",
		Short: "Inject random faults into a lab and check invariants",
		Long: `Build a lab and inject random faults, several at once. The seed is printed, and replays
a run. Invariants that are checked all the time: no split brain between nodes that
reach each other for longer than an advertisement takes; a node that can serve holds
each VIP whenever there is one; every file on disk is valid at any moment; nothing is
left behind.

Faults come in rounds; after each the cluster has to converge. Without an
install-config the lab is a built-in cluster: three control-plane nodes and two
workers, IPv4 and IPv6.

At the first violation it stops, and prints the seed, the events around it, and where
the nodes' logs are. Exit code 1: an invariant was violated.`,
		Example: `  sudo vipgen lab chaos --duration 10m
  sudo vipgen lab chaos --seed 7 --duration 1h -o json > chaos.json

  # The schedule without a lab; a replay from one round on
  vipgen lab chaos --seed 7 --duration 5m --dry-run
  sudo vipgen lab chaos --seed 7 --duration 5m --from-round 3

  # VIPs by BGP: two racks behind routers with FRR and BIRD, and a client behind these
  sudo vipgen lab chaos --announce bgp

  # Some kinds of faults only
  sudo vipgen lab chaos --faults power,partition --max-at-once 2`,
		Args:              command.Args(0, 1),
		ValidArgsFunction: inputflags.CompleteYAML,
		RunE: func(c *cobra.Command, args []string) error {
			if !c.Flags().Changed("seed") {
				f.seed = rand.Uint64N(1 << 32)
			}
			return a.chaos(c, args, &f)
		},
	}
	kinds := lists.Map(chaos.Kinds(), func(k chaos.Kind) string { return string(k) })
	f.input.Add(c)
	flags := c.Flags()
	flags.Uint64Var(&f.seed, "seed", 0, "`number` that the faults follow from (default: random, and printed)")
	flags.DurationVar(&f.duration, "duration", 5*time.Minute, "`duration` of the faults")
	flags.StringVar(&f.profile, "profile", "", "timing `profile`: fast, virtual or classic (default: the cluster's)")
	addAnnounce(c, &f.announce, string(v1alpha1.AnnounceVRRP), "`mode` of the built-in cluster: its VIPs are announced by vrrp or bgp")
	flags.StringSliceVar(&f.faults, "faults", nil, "inject only faults of these kinds: `list` of "+strings.Join(kinds, ", ")+" (default: all)")
	flags.IntVar(&f.atOnce, "max-at-once", chaos.DefaultAtOnce, "`number` of faults at a time, at most")
	flags.IntVar(&f.round, "from-round", 0, "`number` of the first round")
	flags.DurationVar(&f.slack, "slack", chaos.DefaultSlack, "`duration` that is added to every bound, for a busy machine")
	flags.StringVar(&f.logs, "logs", "", "`directory` for the nodes' logs after a violation (default: a new one, which is printed)")
	flags.BoolVar(&f.dryRun, "dry-run", false, "print the schedule of faults, and build nothing")
	addPrograms(c, &f.programs)
	f.output.Add(c, "text", "json")
	_ = c.MarkFlagDirname("logs")
	command.Complete(c, "faults", kinds...)
	command.Complete(c, "profile", string(v1alpha1.ProfileFast), string(v1alpha1.ProfileVirtual), string(v1alpha1.ProfileClassic))
	return c
}

func (a *app) chaos(c *cobra.Command, args []string, f *chaosFlags) error {
	cluster, err := a.clusterOf(c, f.announce, args, &f.input, "profile")
	if err != nil {
		return err
	}
	if cluster, err = withProfile(cluster, f.profile); err != nil {
		return command.Usage(c, err)
	}
	if f.duration <= 0 || f.slack < 0 || f.round < 0 {
		return command.Usagef(c, "--duration must be positive; --slack and --from-round must not be negative")
	}
	cfg := &chaos.Config{
		Cluster: cluster, Seed: f.seed, Duration: f.duration, Slack: f.slack, FromRound: f.round,
		Limits: chaos.Limits{AtOnce: f.atOnce},
	}
	for _, k := range f.faults {
		cfg.Limits.Kinds = append(cfg.Limits.Kinds, chaos.Kind(k))
	}
	p, err := chaos.Prepare(cfg)
	if err != nil {
		return command.Usage(c, err)
	}
	if f.dryRun {
		_, err := io.WriteString(a.Out, fmt.Sprintf("seed %d\n", f.seed)+chaos.Text(p.Schedule, p.Names))
		return err
	}
	if err := asRoot(); err != nil {
		return err
	}
	if cfg.Programs, err = findPrograms(f.programs, false, cluster.Config.Spec.Routed()); err != nil {
		return err
	}
	return a.runChaos(cfg, p, f)
}

// withProfile returns the cluster with the VRRP settings of a profile, in effect from the first
// packet.
func withProfile(c *render.Cluster, name string) (*render.Cluster, error) {
	mode := c.Config.Spec.VRRP.Target.Mode
	switch p := v1alpha1.Profile(name); p {
	case "":
		return c, nil
	case v1alpha1.ProfileFast, v1alpha1.ProfileVirtual, v1alpha1.ProfileClassic:
		return lab.WithVRRP(c, v1alpha1.VRRP{Profile: p, Mode: mode}.Settings()), nil
	default:
		return nil, fmt.Errorf("--profile %s: expected fast, virtual or classic", name)
	}
}

func (a *app) runChaos(cfg *chaos.Config, p *chaos.Prepared, f *chaosFlags) (err error) {
	if cfg.Dir, err = os.MkdirTemp("", "vipgen-chaos-"); err != nil {
		return err
	}
	defer os.RemoveAll(cfg.Dir)
	events, err := os.Create(filepath.Join(cfg.Dir, "events"))
	if err != nil {
		return err
	}
	defer events.Close()
	cfg.Log = slog.New(slog.NewTextHandler(events, nil))
	cfg.Progress = a.chaosProgress()
	fmt.Fprintf(a.Err, "seed %d\n", cfg.Seed)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	result, err := chaos.Run(ctx, cfg, p)
	if result != nil {
		err = errors.Join(err, a.printChaos(result, cfg, f, events.Name()))
	}
	return err
}

// chaosProgress returns a function that prints a line for each event; a terminal has only the last
// one.
func (a *app) chaosProgress() func(time.Duration, string) {
	drawn := command.Terminal(a.Err)
	return func(at time.Duration, what string) {
		line := fmt.Sprintf("%8s  %s", command.Duration(at), what)
		if drawn {
			fmt.Fprintf(a.Err, "\r\x1b[K%.100s", line)
			if strings.HasPrefix(what, "round") {
				fmt.Fprintln(a.Err)
			}
			return
		}
		fmt.Fprintln(a.Err, line)
	}
}

// printChaos prints the result of a run.
func (a *app) printChaos(r *chaos.Result, cfg *chaos.Config, f *chaosFlags, events string) error {
	fmt.Fprintln(a.Err)
	if err := command.Show(a.Out, f.output, "LabChaos", r, func(out io.Writer, r *chaos.Result) { r.Summary(out) }); err != nil {
		return err
	}
	if len(r.Violations) == 0 {
		return nil
	}
	r.Report(a.Err)
	dir, err := keepLogs(r, f.logs, events)
	if err != nil {
		return err
	}
	again := fmt.Sprintf("--seed %d --duration %s --max-at-once %d --from-round %d", cfg.Seed, command.Duration(cfg.Duration), cfg.Limits.AtOnce, cfg.FromRound+max(r.Rounds-1, 0))
	if f.profile != "" {
		again += " --profile " + f.profile
	}
	if f.announce == string(v1alpha1.AnnounceBGP) {
		again += " --announce bgp"
	}
	if len(f.faults) > 0 {
		again += " --faults " + strings.Join(f.faults, ",")
	}
	fmt.Fprintf(a.Err, "logs of the nodes, and events of their pods: %s\nreplay, with the same cluster: vipgen lab chaos %s\n", dir, again)
	return command.ErrFinding
}

// keepLogs writes the logs of nodes to a directory and returns its path.
func keepLogs(r *chaos.Result, dir, events string) (string, error) {
	var err error
	if dir == "" {
		dir, err = os.MkdirTemp("", "vipgen-chaos-logs-")
	} else {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return "", err
	}
	happened, err := os.ReadFile(events)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "pods.log"), happened, 0o644)
	}
	var report strings.Builder
	r.Report(&report)
	err = errors.Join(err, os.WriteFile(filepath.Join(dir, "timeline.txt"), []byte(report.String()), 0o644))
	for name, log := range r.Logs {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name+".log"), []byte(log), 0o644))
	}
	return dir, err
}
