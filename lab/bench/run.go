package bench

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/lab"
	"github.com/vipgen/vipgen/lab/client"
	"github.com/vipgen/vipgen/lab/report"
	"github.com/vipgen/vipgen/lab/testbed/probe"
	"github.com/vipgen/vipgen/lab/testbed/watch"
)

const (
	// warm is the number of answers that a client gets before the fault. Its kernel keeps what it
	// learned by ARP for a second, whatever it receives (arp(7), locktime): the client is to be one
	// that was there for longer.
	warm = 200
	// enough is the number of answers in a row that end a run.
	enough = 100
	// undoing is the time limit for undoing all faults after a run.
	undoing = 5 * time.Minute
)

// ended is the last event of a run that was completed.
const ended = "end of the run"

// run is a scenario in progress on a cluster.
type run struct {
	*subject
	scenario *Scenario
	vip      netip.Addr
	holder   *lab.Node // at the time of the fault; with VIPs by BGP, the affected node
	gone     *lab.Node // powered off before
	since    time.Time
	fault    time.Duration // relative to since
	healed   time.Duration // end of a partition, relative to since
	probe    *probe.Probe
	// elsewhere asks nodes that are not affected; nil unless several nodes have the VIP.
	elsewhere *probe.Probe
	watch     *watch.Watch
	held      *probe.Held
	others    *client.Clients // nil if there are none
	seen      []client.Result // results of others, after they have ended
	events    []report.Event
	undo      []func(context.Context) error
	removals  []chan error
}

// once runs a scenario on a cluster, which it makes healthy first. The fault starts at a phase of
// the advertisement interval, from 0 to 1. After an error the run is not valid, and the cluster may
// be damaged.
func once(ctx context.Context, s *subject, scenario *Scenario, phase float64) (out report.Run, err error) {
	if err := s.settled(ctx); err != nil {
		return report.Run{}, err
	}
	r := &run{subject: s, scenario: scenario, vip: s.VIPs(scenario.VIP)[0]}
	defer func() { err = errors.Join(err, r.restore(ctx)) }()
	if scenario.before != nil {
		if err := scenario.before(ctx, r); err != nil {
			return report.Run{}, err
		}
	}
	if r.holder, err = s.affected(ctx, scenario.VIP, phase); err != nil {
		return report.Run{}, err
	}
	if err := r.observe(ctx); err != nil {
		return report.Run{}, errors.Join(err, r.close())
	}
	r.align(ctx, phase)
	err = r.execute(ctx)
	out = r.result()
	return out, errors.Join(err, r.close())
}

// observe starts the client and the watch of the network.
func (r *run) observe(ctx context.Context) (err error) {
	r.since = time.Now()
	asked := r.vip
	vips := r.vips()
	if r.scenario.NewVIP {
		asked = r.spare[0].Addr()
		vips = append(vips, asked)
	}
	if r.watch, err = watch.Start(watch.Config{Network: r.Network(), Nodes: r.hosts(), VIPs: vips, Since: r.since}); err != nil {
		return err
	}
	for _, n := range r.Nodes() {
		if !n.On() {
			r.watch.Off(n.Name)
		}
	}
	if r.scenario.NewVIP {
		r.vip = asked
		return nil
	}
	if err := r.startClients(ctx); err != nil {
		return err
	}
	if err := r.ask(asked); err != nil {
		return err
	}
	if err := r.probe.Await(ctx, warm); err != nil || r.others == nil {
		return err
	}
	return r.others.Touch(ctx)
}

func (r *run) ask(vip netip.Addr) (err error) {
	if r.Routed {
		return r.askRouted(vip)
	}
	r.probe, err = probe.Start(probe.Config{Target: r.target(vip), Since: r.since})
	return err
}

// target returns the target of the client's requests: an answer of an API server that continues
// during its shutdown, or a page that is routed by its name.
func (r *run) target(vip netip.Addr) probe.Target {
	t := probe.Target{Dial: r.Client.DialContext}
	to := r.at(r.scenario.VIP, vip).String()
	if r.scenario.VIP == ingress {
		t.URL = "http://" + to + "/"
		t.Host = "console.apps." + r.Spec().Domain
		return t
	}
	t.URL = "https://" + to + "/livez"
	return t
}

// at returns the address and port of the client's requests to a VIP.
func (s *subject) at(role v1alpha1.GroupRole, vip netip.Addr) netip.AddrPort {
	if role == ingress {
		return netip.AddrPortFrom(vip, v1alpha1.HTTPPort)
	}
	return netip.AddrPortFrom(vip, uint16(s.Spec().Ports.API))
}

// align waits for a phase of the holder's advertisement interval.
func (r *run) align(ctx context.Context, phase float64) {
	for _, s := range r.watch.Speakers() {
		if s.Node != r.holder.Name || !slices.Contains(s.Last.VIPs, r.vip) || s.Last.Interval <= 0 {
			continue
		}
		at := s.At + time.Duration(phase*float64(s.Last.Interval))
		for at < time.Since(r.since) {
			at += s.Last.Interval
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Until(r.since.Add(at))):
		}
		return
	}
}

// execute executes the scenario and returns when it is over. Exceeding its limit is not an error,
// but an event of the run.
func (r *run) execute(ctx context.Context) error {
	longest := r.scenario.Limit
	if longest == 0 {
		longest = limit
	}
	if r.scenario.NewVIP {
		if err := r.ask(r.vip); err != nil {
			return err
		}
	}
	if r.others != nil {
		longest += clientsLimit
		r.others.Begin()
	}
	limited, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	r.fault = r.mark(fmt.Sprintf("%s; %s %s the VIP", r.scenario.Title, r.holder.Name, r.has()))
	err := r.scenario.happens(limited, r)
	if err == nil {
		over := r.scenario.over
		if over == nil {
			over = func(ctx context.Context, r *run) error { return r.awaitAnswers(ctx) }
		}
		err = over(limited, r)
	}
	if err == nil && r.others != nil {
		err = r.others.Await(limited)
	}
	switch {
	case err == nil:
		r.mark(ended)
	case ctx.Err() == nil && limited.Err() != nil:
		r.mark(fmt.Sprintf("not over within %v: %v", longest, err))
		return nil
	}
	return err
}

// has describes what the affected node does with the VIP.
func (r *run) has() string {
	if r.Routed {
		return "announces"
	}
	return "has"
}

func (r *run) now() time.Duration { return time.Since(r.since) }

// mark records an event now, and returns its time.
func (r *run) mark(what string) time.Duration {
	at := r.now()
	r.events = append(r.events, report.Event{At: at, Text: what})
	return at
}

// later registers f to be called after the run, the last first.
func (r *run) later(f func(context.Context) error) { r.undo = append(r.undo, f) }

// awaitAnswers waits until the client gets answers again.
func (r *run) awaitAnswers(ctx context.Context) error { return r.probe.Await(ctx, enough) }

// kill powers a node off, and heal powers it on.
func (r *run) kill(n *lab.Node) error {
	r.watch.Off(n.Name)
	return n.Kill()
}

func (r *run) heal(ctx context.Context, n *lab.Node) error {
	if r.watch != nil {
		r.watch.On(n.Name)
	}
	return n.Heal(ctx)
}

// close stops what an error has left running.
func (r *run) close() (err error) {
	for _, p := range []*probe.Probe{r.probe, r.elsewhere} {
		if p != nil {
			p.End()
		}
	}
	if r.held != nil {
		r.held.End()
	}
	r.endClients()
	if r.watch != nil {
		_, err = r.watch.End()
	}
	return err
}

// restore undoes the faults, also when ctx has ended.
func (r *run) restore(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoing)
	defer cancel()
	for _, f := range slices.Backward(r.undo) {
		err = errors.Join(err, f(ctx))
	}
	return err
}
