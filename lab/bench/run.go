package bench

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/vipgen/vipgen/lab"
	"github.com/vipgen/vipgen/lab/client"
	"github.com/vipgen/vipgen/lab/report"
	"github.com/vipgen/vipgen/lab/testbed/probe"
	"github.com/vipgen/vipgen/lab/testbed/watch"
)

const (
	// warm is how many answers a client has had before anything happens. Its kernel
	// keeps what it learned by ARP for a second, whatever it hears (arp(7),
	// locktime): this is one that was there for longer.
	warm = 200
	// enough is how many answers in a row end a run.
	enough = 100
	// undoing bounds what undoes all faults after a run.
	undoing = 5 * time.Minute
)

// ended is the last event of a run that came to its end.
const ended = "end of the run"

// run is a scenario as it happens to a cluster.
type run struct {
	*subject
	scenario *Scenario
	vip      netip.Addr
	holder   *lab.Node // when it happens
	gone     *lab.Node // was switched off before
	since    time.Time
	fault    time.Duration // from since until it happened
	healed   time.Duration // from since until the network did, of a partition
	probe    *probe.Probe
	watch    *watch.Watch
	held     *probe.Held
	others   *client.Clients // nil if there are none
	seen     []client.Result // of them, when they have ended
	events   []report.Event
	undo     []func(context.Context) error
	removals []chan error
}

// once has a scenario happen to a cluster that is made healthy before, at a moment
// between two adverts that phase says, from 0 to 1. The error says that it could
// not be measured, and that the cluster may not be whole.
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
	if r.holder, err = s.Holder(ctx, r.vip); err != nil {
		return report.Run{}, err
	}
	if err := r.look(ctx); err != nil {
		return report.Run{}, errors.Join(err, r.close())
	}
	r.align(ctx, phase)
	err = r.happen(ctx)
	out = r.result()
	return out, errors.Join(err, r.close())
}

// look has a client ask, and the network watched.
func (r *run) look(ctx context.Context) (err error) {
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
	r.probe, err = probe.Start(probe.Config{Target: r.target(vip), Since: r.since})
	return err
}

// target is what a client asks for: an answer of an API server, which one that ends
// goes on giving for a while, or a page that is routed to by its name.
func (r *run) target(vip netip.Addr) probe.Target {
	t := probe.Target{Dial: r.Client.DialContext}
	if r.scenario.VIP == ingress {
		t.URL = "http://" + netip.AddrPortFrom(vip, 80).String() + "/"
		t.Host = "console.apps." + r.Spec().Domain
		return t
	}
	t.URL = "https://" + netip.AddrPortFrom(vip, uint16(r.Spec().Ports.API)).String() + "/livez"
	return t
}

// align waits for a moment between two adverts of the holder.
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

// happen has the scenario happen, and returns when it is over. What takes longer
// than its limit is no error: the run says so.
func (r *run) happen(ctx context.Context) error {
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
	r.fault = r.mark(fmt.Sprintf("%s; %s has the VIP", r.scenario.Title, r.holder.Name))
	err := r.scenario.happens(limited, r)
	if err == nil {
		over := r.scenario.over
		if over == nil {
			over = func(ctx context.Context, r *run) error { return r.answers(ctx) }
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

func (r *run) now() time.Duration { return time.Since(r.since) }

// mark notes what happens now, and returns when that is.
func (r *run) mark(what string) time.Duration {
	at := r.now()
	r.events = append(r.events, report.Event{At: at, Text: what})
	return at
}

// later has something undone after the run, the last first.
func (r *run) later(f func(context.Context) error) { r.undo = append(r.undo, f) }

// answers returns when the client gets answers again.
func (r *run) answers(ctx context.Context) error { return r.probe.Await(ctx, enough) }

// kill takes a node's power, and heal gives it back.
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

// close ends what is left when something went wrong.
func (r *run) close() (err error) {
	if r.probe != nil {
		r.probe.End()
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

// restore undoes what happened, also when ctx has ended.
func (r *run) restore(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoing)
	defer cancel()
	for _, f := range slices.Backward(r.undo) {
		err = errors.Join(err, f(ctx))
	}
	return err
}
