package gate

import (
	"context"
	"sync/atomic"

	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// answers lets the HAProxy check rely on the haproxy job, which asks HAProxy at the same
// pace. The check asks HAProxy itself where that job does not publish that HAProxy
// serves, or has not asked it lately (another version, a job that hangs).
type answers struct {
	dir  *state.Dir
	last *state.Answers
	// serves reports whether the haproxy job lives and publishes that HAProxy serves.
	serves atomic.Bool
	failed chan string
}

// answeredLately bounds the age of a usable answer: the time until the next one is due,
// and the delay of a probe on a busy node.
var answeredLately = vrrp.HAProxyProbe.Interval + vrrp.HAProxyProbe.Confirm

func newAnswers(dir *state.Dir) *answers {
	return &answers{dir: dir, last: dir.Answers(state.HAProxy{}), failed: make(chan string, 1)}
}

// run follows the haproxy job until ctx ends.
func (a *answers) run(ctx context.Context) error {
	return onChange(ctx, a.dir, state.HAProxy{}, a.poll)
}

// onChange calls poll after each change of a job's state until ctx ends.
func onChange(ctx context.Context, dir *state.Dir, job state.Job, poll func()) error {
	changed, err := dir.Watch(ctx, job)
	if err != nil {
		return err
	}
	go func() {
		for range changed {
			poll()
		}
	}()
	return nil
}

// poll fails the check as soon as the haproxy job reports that HAProxy no longer serves.
// A crash is left to the check, and an HAProxy that is being stopped serves until the
// VIPs have left.
func (a *answers) poll() {
	s, err := state.Read[state.HAProxy](a.dir)
	serves := err == nil && s != nil && s.Serving
	before := a.serves.Swap(serves)
	select {
	case <-a.failed: // outdated
	default:
	}
	if before && !serves && s != nil && !s.Restarting && !s.Leaving {
		a.failed <- s.Why
	}
}

// use makes the HAProxy check in list rely on the answers.
func (a *answers) use(list []health.Check) {
	for i := range list {
		if list[i].Name == health.FactHAProxy {
			list[i].Probe, list[i].Failed = a.probe(list[i].Probe), a.failed
		}
	}
}

// probe returns a probe that calls ask only if HAProxy has not answered the haproxy job
// lately.
func (a *answers) probe(ask func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if a.serves.Load() {
			if ago, err := a.last.Age(); err == nil && ago <= answeredLately {
				return nil
			}
		}
		return ask(ctx)
	}
}
