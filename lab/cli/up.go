package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/cmd/inputflags"
	"github.com/vipgen/vipgen/lab"
	"github.com/vipgen/vipgen/lab/control"
	"github.com/vipgen/vipgen/render"
)

// upFlags holds the flags of lab up.
type upFlags struct {
	*labFlags
	input    inputflags.Flags
	announce string
	plan     lab.PlanOptions
	programs lab.Programs
	realAPI  bool
	detach   bool
}

func (a *app) upCommand(f *labFlags) *cobra.Command {
	up := upFlags{labFlags: f}
	c := &cobra.Command{
		Use:   "up [install-config.yaml]",
		Short: "Build a lab and run it",
		Long: `Build the cluster of an install-config as a lab and run it: at a terminal with a live
table of VIPs and nodes, else with a line for each event. Ctrl-C removes the lab; with
--detach it runs in the background until 'vipgen lab down'.

With --announce the cluster is a built-in one. Its VIPs are announced by VRRP, or by
BGP: nodes in two racks, whose routers have FRR and BIRD (Debian's frr and bird2), and
a client behind these.

API servers are stand-ins with TLS, or with --real-apiserver etcd and kube-apiserver;
routers, machine config servers and the site's name server are always stand-ins.
vipgen-agent, coredns, etcd and kube-apiserver are searched next to vipgen, in the
.cache/bin of a checkout, and in PATH.`,
		Example: `  sudo vipgen lab up install-config.yaml
  sudo vipgen lab up install-config.yaml --nodes master=3,worker=1 --bootstrap
  sudo vipgen lab up install-config.yaml --detach

  # VIPs by BGP, and what a router knows of them
  sudo vipgen lab up --announce bgp --detach
  sudo vipgen lab exec rack-a -- vtysh -c 'show bgp ipv4'`,
	}
	inputflags.OnCluster(c, func(c *cobra.Command, installConfig string) error {
		return a.up(c, installConfig, up)
	})
	up.input.Add(c)
	flags := c.Flags()
	flags.StringToIntVar(&up.plan.Counts, "nodes", nil, fmt.Sprintf("`counts` of nodes by pool, such as master=3,worker=1 (default: those of the install-config, at most %d workers for each ingress controller)", lab.MaxWorkers))
	addAnnounce(c, &up.announce, "", "build a built-in cluster, whose VIPs are announced by this `mode`: vrrp or bgp")
	flags.BoolVar(&up.plan.Bootstrap, "bootstrap", false, "add a bootstrap host")
	addRealAPI(c, &up.realAPI, &up.programs)
	flags.BoolVar(&up.detach, "detach", false, "run in the background; return when the lab is up")
	addPrograms(c, &up.programs)
	return c
}

func (a *app) up(c *cobra.Command, installConfig string, up upFlags) error {
	if err := asRoot(); err != nil {
		return err
	}
	ready := readiness()
	if up.detach && ready == nil {
		return a.detach(installConfig, up)
	}
	o, err := a.options(c, installConfig, up)
	if err != nil {
		return err
	}
	began := time.Now()
	o.Progress = func(what string) { fmt.Fprintf(a.Err, "%6s  %s\n", command.Duration(time.Since(began)), what) }
	events := make(chan control.Event, 1024)
	o.Events = events

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	// Nothing reads the channel: without it, a reader that closes our output would end this process
	// before it has cleaned up.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	l, err := control.Start(ctx, o)
	if err != nil {
		return interrupted(ctx, o.Place, err)
	}
	err = a.showLab(ctx, l, o, up.where(), events, ready)
	fmt.Fprintf(a.Err, "removing the lab %s\n", o.Place.Name)
	stop() // a second signal ends the process at once
	if e := l.Close(); e != nil {
		return e
	}
	return err
}

// interrupted returns the error for a lab that was interrupted while it was built.
func interrupted(ctx context.Context, place control.Place, err error) error {
	if ctx.Err() != nil && !place.Used() {
		return errors.New("interrupted; nothing is left of the lab")
	}
	return err
}

// options returns the options of a lab, with its cluster and programs.
func (a *app) options(c *cobra.Command, installConfig string, up upFlags) (o control.Options, err error) {
	cluster, err := a.upCluster(c, installConfig, &up)
	if err != nil {
		return o, err
	}
	name := up.name
	if name == "" {
		name = clusterName(cluster)
	}
	place, err := control.At(up.dir, name)
	if err != nil {
		return o, command.Usage(c, err)
	}
	plan, err := lab.PlanFor(cluster, up.plan)
	if err != nil {
		return o, command.Usage(c, err)
	}
	programs, err := findPrograms(up.programs, up.realAPI, cluster.Config.Spec.Routed())
	if err != nil {
		return o, err
	}
	return control.Options{Place: place, Config: lab.Config{Cluster: cluster, Plan: plan, Programs: programs, RealAPI: up.realAPI}}, nil
}

// upCluster returns the cluster of the install-config, or a built-in one.
func (a *app) upCluster(c *cobra.Command, installConfig string, up *upFlags) (*render.Cluster, error) {
	if up.announce == "" {
		return a.elected(installConfig, &up.input)
	}
	return a.clusterOf(c, up.announce, c.Flags().Args(), &up.input, "bootstrap")
}

func clusterName(c *render.Cluster) string { return c.Config.Metadata.Name }

// holdersFor is the time to wait for a holder of each VIP before the lab counts as up.
const holdersFor = 30 * time.Second

// showLab shows the lab until ctx ends. If ready is not nil, it reports there that the lab is up.
func (a *app) showLab(ctx context.Context, l *control.Lab, o control.Options, where string, events <-chan control.Event, ready *os.File) error {
	routed := o.Config.Cluster.Config.Spec.Routed()
	o.Progress("virtual IPs")
	waiting, cancel := context.WithTimeout(ctx, holdersFor)
	without := l.AwaitHolders(waiting)
	cancel()
	if ctx.Err() != nil {
		return nil
	}
	if len(without) > 0 {
		what := "no node holds"
		if routed {
			what = "not all nodes announce"
		}
		fmt.Fprintf(a.Err, "%s %s %s yet\n", command.Colours(a.Err).Paint(command.Yellow, "warning:"), what, strings.Join(without, ", "))
	}
	o.Progress("up")
	switch {
	case ready != nil:
		if err := leave(ready, o.Place.Log()); err != nil {
			return err
		}
		<-ctx.Done() // events are in the log
		return nil
	case redrawn(a.Out):
		return liveTable(ctx, a.Out.(*os.File), l, where, events)
	default:
		fmt.Fprint(a.Err, hints(routed, where))
		return printEvents(ctx, a.Out, events)
	}
}

// printEvents prints a line for each event until ctx ends.
func printEvents(ctx context.Context, out io.Writer, events <-chan control.Event) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-events:
			if _, err := fmt.Fprintf(out, "%s  %s\n", e.At.Format("15:04:05.000"), command.SafeLine(e.Text)); err != nil {
				return fmt.Errorf("printing an event: %w", err)
			}
		}
	}
}
