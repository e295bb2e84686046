package firewall

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/job"
	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/liveness"
)

// settleTime is how long a starting job leaves existing rules in place while the haproxy
// job, which may be starting too, has published nothing.
const settleTime = 10 * time.Second

// Job keeps the redirect of a node in step with cluster.yaml and the published state of
// HAProxy.
type Job struct {
	Source *facts.Source
	State  *state.Dir
	Log    *slog.Logger

	// Published state of HAProxy.
	leaving, restarting, ready atomic.Bool
	departures                 departures // owned by feed

	watchdog liveness.Watchdog
	last     atomic.Pointer[state.Firewall]
	failing  logging.Transitions
	removing logging.Transitions
	reading  logging.Transitions
}

// Run keeps the redirect until ctx ends, and removes it once the VIPs have left the node
// (hard case 43): without it their clients reach the node's own API server, which may be
// stopping.
func (j *Job) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	haproxyChanged, err := j.State.Watch(ctx, state.HAProxy{})
	if err != nil {
		return err
	}
	changed := make(chan struct{}, 1)
	redirects, serving := make(chan Redirect), make(chan bool)
	watched, fed := make(chan error, 1), make(chan struct{})
	go func() {
		defer stop()
		watched <- j.Source.Watch(ctx, func(bool) {
			select {
			case changed <- struct{}{}:
			default:
			}
		})
	}()
	go func() {
		defer close(fed)
		j.feed(ctx, changed, haproxyChanged, redirects, serving)
	}()
	j.publish(State{})
	keeper := Keeper{Redirects: redirects, Serving: serving, Notify: j.publish, Turn: j.turn, Leaving: j.leaving.Load, Ready: j.ready.Load, Linger: j.linger}
	err = keeper.Run(ctx)
	stop()
	<-fed
	for range haproxyChanged { // until the watch has ended
	}
	return errors.Join(err, <-watched)
}

func (j *Job) feed(ctx context.Context, changed, haproxyChanged <-chan struct{}, redirects chan<- Redirect, serving chan<- bool) {
	settled := time.NewTimer(settleTime)
	defer settled.Stop()
	known := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			if r, ok := j.redirect(); ok {
				send(ctx, redirects, r)
				j.departures.update(r, j.Log)
			}
			continue
		case <-settled.C:
			known = true
		case <-haproxyChanged:
		}
		s, err := state.Read[state.HAProxy](j.State)
		j.reading.Error(j.Log, err, "cannot read the state of the haproxy job: it counts as not serving", "state of the haproxy job read again")
		if known = known || s != nil; known {
			j.leaving.Store(s != nil && s.Leaving)
			j.restarting.Store(s != nil && s.Restarting)
			ready := s != nil && s.Ready && !s.Leaving
			j.ready.Store(ready)
			send(ctx, serving, ready || !j.ownOnly() && s != nil && (s.Serving || s.Leaving))
		}
	}
}

// linger waits for the VIPs to leave the node, which the withdrawn health fact causes,
// and for answers in transit. Then it ends open connections, whose packets nothing
// translates without the table.
func (j *Job) linger(r Redirect) {
	if here, err := job.VIPsHere(r.VIPs); err == nil && here {
		job.AwaitShutdown(j.Log, r.VIPs)
	}
	// They may have left earlier.
	here, err := job.Here(r.VIPs)
	if err != nil {
		return
	}
	gone := slices.DeleteFunc(slices.Clone(r.VIPs), func(vip netip.Addr) bool { return slices.Contains(here, vip) })
	of := r.belongsTo(gone, here, true)
	if open, err := connections(of); err == nil && len(open) > 0 {
		time.Sleep(answering)
		endConnections(of, gone, j.Log)
	}
}

// ownOnly reports whether HAProxy on this node serves only the node's own connections.
func (j *Job) ownOnly() bool { return !v1alpha1.ControlPlaneRole(j.Source.Role) }

// loopback holds the addresses of HAProxy on compute nodes (templates/haproxy), by
// whether they are IPv4.
var loopback = map[bool]netip.Addr{true: netip.AddrFrom4([4]byte{127, 0, 0, 1}), false: netip.IPv6Loopback()}

func (j *Job) redirect() (r Redirect, ok bool) {
	cluster, node, err := j.Source.Current()
	if err != nil {
		return r, false // logged by the source
	}
	r.From, r.To = cluster.Spec.Ports.API, cluster.Spec.Ports.HAProxy
	r.Own, r.OwnOnly = cluster.Spec.LocalAPI(node.Role), j.ownOnly()
	r.Local = map[netip.Addr]netip.Addr{}
	for _, g := range cluster.Spec.Groups {
		if g.Role == v1alpha1.GroupAPI {
			r.VIPs = append(r.VIPs, g.VIPs...)
		}
	}
	for _, vip := range r.VIPs {
		switch b, ok := node.Bind(vip); {
		case !ok, r.OwnOnly && vip.Is6() && node.NoIPv6:
		case r.OwnOnly:
			r.Local[vip] = loopback[vip.Is4()]
		default:
			r.Local[vip] = b.Source.Addr()
		}
	}
	return r, true
}

func send[T any](ctx context.Context, to chan<- T, v T) {
	select {
	case <-ctx.Done():
	case to <- v:
	}
}

func (j *Job) publish(s State) {
	p := state.Firewall{InPlace: s.InPlace, Own: s.Own, Serving: s.Serving, Since: s.Since.UTC(), Restored: s.Restored, Why: text(s.Err), Operators: s.Leftover}
	j.removing.Warn(j.Log, s.LeftoverErr, "cannot remove OpenShift's own redirect; trying again", "OpenShift's own redirect can be removed")
	if s.InPlace {
		p.VIPs = s.Redirect.VIPs
	}
	before := j.last.Swap(&p)
	j.logChanges(before, p)
	j.republish()
}

// turn is called several times a second.
func (j *Job) turn() {
	j.watchdog.Reset()
	j.republish() // retries after a failure
}

// republish publishes the last state with the current facts.
func (j *Job) republish() {
	p := *j.last.Load()
	p.Restarting = j.restarting.Load()
	j.failing.Error(j.Log, j.State.Publish(p), "cannot publish the state of the redirect", "state published again")
}

// logChanges logs the changes since before, which is nil at the start.
func (j *Job) logChanges(before *state.Firewall, now state.Firewall) {
	switch {
	case now.Operators != "" && (before == nil || now.Operators != before.Operators):
		j.Log.Warn("OpenShift's own redirect is on this node: it is removed once vipgen's is in place", "found", now.Operators)
	case now.Operators == "" && before != nil && before.Operators != "":
		j.Log.Info("OpenShift's own redirect removed", "found", before.Operators)
	}
	level, what := slog.LevelInfo, ""
	switch {
	case before == nil:
		return
	case now.Why != "" && now.Why != before.Why:
		level, what = slog.LevelError, "cannot maintain the redirect; trying again"
	case now.Restored > before.Restored:
		level, what = slog.LevelWarn, "redirect restored: something else had removed or changed it"
	case now.InPlace && !before.InPlace:
		what = "redirect placed"
	case now.InPlace && !slices.Equal(now.VIPs, before.VIPs):
		what = "redirect changed"
	case !now.InPlace && before.InPlace && now.Serving:
		what = "redirect stays until the VIPs have left: HAProxy or this job is being stopped"
	case !now.InPlace && before.InPlace:
		what = "redirect withdrawn"
	case now.Own && !before.Own:
		what = "the node's own connections to the VIPs go to its HAProxy"
	case !now.Own && before.Own:
		what = "the node's own connections to the VIPs go to their holders: HAProxy has no API server that is ready"
	case now.Why == "" && before.Why != "":
		what = "redirect maintained again"
	default:
		return
	}
	j.Log.Log(context.Background(), level, what, "vips", now.VIPs, "haproxyServes", now.Serving, "restored", now.Restored, "error", now.Why)
}
