package haproxy

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/ticker"
	"github.com/vipgen/vipgen/internal/vrrp"
)

const (
	// restartTime is how long HAProxy that crashed has to serve again before that counts
	// against the node. It takes a tenth of that on a busy node.
	restartTime = time.Second
	// steadyAfter is for how long HAProxy must have run for its crash not to count at
	// once. One that crashes again and again is better replaced by another node's.
	steadyAfter = 10 * time.Second
	// startPoll is how often HAProxy that was started again is asked whether it serves.
	startPoll = 5 * time.Millisecond
)

// ownPace is how HAProxy is asked that is for the node's own programs: no VIP depends on it,
// and a crash is known without it.
var ownPace = vrrp.ProbeTiming{Interval: time.Second, Confirm: 100 * time.Millisecond, Timeout: time.Second, Times: 2}

// pace is how HAProxy is asked whether it serves.
func (j *Job) pace() vrrp.ProbeTiming {
	if v1alpha1.ControlPlaneRole(j.Source.Role) {
		return vrrp.HAProxyProbe // the keepalived job relies on it
	}
	return ownPace
}

// service is whether HAProxy serves.
type service struct {
	is    bool
	since time.Time // when it became so
	why   string    // not
	// restarting says that it crashed, and has restartTime to serve again.
	restarting bool
	// life counts HAProxy's processes: what was found out about one says nothing about
	// the next. over ends what asks the current one.
	life    int
	over    context.CancelFunc
	crashed time.Time // when the last one ended by itself
}

// watch finds out whether HAProxy serves.
func (j *Job) watch(ctx context.Context) {
	var checks sync.WaitGroup
	defer checks.Wait()
	checks.Go(func() {
		for ctx.Err() == nil {
			j.checkLife(ctx)
		}
	})
	tick := ticker.New(lookEvery)
	defer tick.Stop()
	for {
		j.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			tick.Next()
		case <-j.changes:
		}
	}
}

// checkLife asks one process of HAProxy whether it serves, until that or ctx ends.
func (j *Job) checkLife(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	j.mu.Lock()
	life := j.serving.life
	j.serving.over = cancel
	j.mu.Unlock()
	var probe *health.HTTP
	port := 0
	pace, answers := j.pace(), j.State.Answers(state.HAProxy{})
	check := health.Check{
		Name: health.FactHAProxy, Rise: 1, Fall: pace.Times, Timeout: pace.Timeout,
		Interval: pace.Interval, Confirm: pace.Confirm, Metrics: j.Checks,
		Probe: func(ctx context.Context) error {
			if now := j.readyPort(); now != port {
				port, probe = now, health.NewHTTP(fmt.Sprintf("http://localhost:%d/haproxy_ready", now))
			}
			err := j.eagerly(ctx, probe.Probe)
			if err == nil {
				_ = answers.Note() // without it the keepalived job asks HAProxy itself
			}
			return err
		},
		Close: func() {
			if probe != nil {
				probe.Close()
			}
		},
	}
	check.Run(ctx, func(f state.Fact) { j.set(life, f.OK, f.Why) })
}

// eagerly probes again and again while HAProxy starts after a crash, until ctx ends: what
// it serves again is redirected to it as soon as that is known.
func (j *Job) eagerly(ctx context.Context, probe func(context.Context) error) error {
	for {
		err := probe(ctx)
		j.mu.Lock()
		crashed := j.serving.crashed
		j.mu.Unlock()
		if err == nil || time.Since(crashed) > restartTime {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(startPoll):
		}
	}
}

func (j *Job) readyPort() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.port
}

func (j *Job) life() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.serving.life
}

// set takes in whether the process of that life serves.
func (j *Job) set(life int, serves bool, why string) {
	j.mu.Lock()
	s := &j.serving
	if life != s.life {
		j.mu.Unlock()
		return
	}
	switch {
	case serves == s.is:
	case serves:
		j.Log.Info("HAProxy serves")
		s.since = time.Now()
	default:
		j.Log.Warn("HAProxy does not serve", "why", why)
	}
	s.is, s.why = serves, why
	j.mu.Unlock()
	j.publish()
}

// ended is called when HAProxy has ended by itself, at once: nobody is to wait for a check
// to find it out. The redirect goes then, and new connections reach the node's own API
// server. stopping says that the job was told to end, so that HAProxy may have been told as
// well and is not started again.
func (j *Job) ended(stopping bool) {
	j.mu.Lock()
	s := &j.serving
	s.restarting = s.is && !stopping && time.Since(s.since) >= steadyAfter
	s.is, s.why, s.crashed = false, "HAProxy has ended", time.Now()
	j.ready = false // until the next is asked
	s.life++
	if s.over != nil {
		s.over()
	}
	if s.restarting {
		time.AfterFunc(restartTime, j.restarted)
	}
	j.mu.Unlock()
	j.publish()
	j.Log.Warn("HAProxy has ended by itself")
}

// restarted ends the time that HAProxy has to serve again.
func (j *Job) restarted() {
	j.mu.Lock()
	again := j.serving.restarting && time.Since(j.serving.crashed) >= restartTime
	if again {
		j.serving.restarting = false
	}
	j.mu.Unlock()
	if again {
		j.publish()
	}
}
