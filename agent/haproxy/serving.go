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
	// steadyAfter is how long HAProxy must have run for vrrp.RestartTime to apply. If it
	// crashes again and again, another node's is better.
	steadyAfter = 10 * time.Second
	// startPoll is the poll interval after a restart.
	startPoll = 5 * time.Millisecond
)

// ownPace is the probe timing where HAProxy serves only the node's own programs: no VIP
// depends on it, and crashes are known without it.
var ownPace = vrrp.ProbeTiming{Interval: time.Second, Confirm: 100 * time.Millisecond, Timeout: time.Second, Times: 2}

func (j *Job) pace() vrrp.ProbeTiming {
	if v1alpha1.ControlPlaneRole(j.Source.Role) {
		return vrrp.HAProxyProbe // the keepalived job relies on it
	}
	return ownPace
}

type service struct {
	is    bool
	since time.Time // start of the current state
	why   string    // why it does not serve
	// restarting reports that it crashed, and has vrrp.RestartTime to serve again.
	restarting bool
	// life counts HAProxy's processes: results of one do not apply to the next. over
	// cancels the checks of the current one.
	life    int
	over    context.CancelFunc
	crashed time.Time // when the last one crashed
}

// watch checks whether HAProxy serves, and polls its backends.
func (j *Job) watch(ctx context.Context) {
	var checks sync.WaitGroup
	defer checks.Wait()
	checks.Go(func() {
		for ctx.Err() == nil {
			j.checkLife(ctx)
		}
	})
	tick := ticker.New(backendPollEvery)
	defer tick.Stop()
	for {
		j.poll(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			tick.Next()
		case <-j.changes:
		}
	}
}

// checkLife checks one process of HAProxy until that or ctx ends.
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
				_ = answers.Record() // on failure the keepalived job asks HAProxy itself
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

// eagerly repeats a failed probe quickly while HAProxy restarts after a crash, so that
// the redirect follows at once.
func (j *Job) eagerly(ctx context.Context, probe func(context.Context) error) error {
	for {
		err := probe(ctx)
		j.mu.Lock()
		crashed := j.serving.crashed
		j.mu.Unlock()
		if err == nil || time.Since(crashed) > vrrp.RestartTime {
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

// set records whether the process with that life serves.
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

// ended handles the end of HAProxy at once, without waiting for a check. The redirect is
// withdrawn, and new connections reach the node's own API server. stopping reports that
// the job is stopping, so that HAProxy may have been stopped too and is not restarted.
func (j *Job) ended(stopping bool) {
	j.mu.Lock()
	s := &j.serving
	s.restarting = s.is && !stopping && time.Since(s.since) >= steadyAfter
	s.is, s.why, s.crashed = false, "HAProxy has ended", time.Now()
	j.ready = false // until the next poll
	s.life++
	if s.over != nil {
		s.over()
	}
	if s.restarting {
		time.AfterFunc(vrrp.RestartTime, j.restarted)
	}
	j.mu.Unlock()
	j.publish()
	j.Log.Warn("HAProxy exited unexpectedly")
}

// restarted ends the time to serve again.
func (j *Job) restarted() {
	j.mu.Lock()
	again := j.serving.restarting && time.Since(j.serving.crashed) >= vrrp.RestartTime
	if again {
		j.serving.restarting = false
	}
	j.mu.Unlock()
	if again {
		j.publish()
	}
}
