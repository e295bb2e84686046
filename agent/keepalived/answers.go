package keepalived

import (
	"context"
	"sync/atomic"

	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// answers has the check of HAProxy rest on the haproxy job, which asks HAProxy at the same
// pace: one of them is enough. Where that job does not publish that HAProxy serves, or has not asked it for a while (another version, a job that hangs), the check
// asks HAProxy itself.
type answers struct {
	dir  *state.Dir
	last *state.Answers
	// serves is whether the haproxy job lives and publishes that HAProxy serves.
	serves atomic.Bool
	failed chan string
}

// answeredLately is for how long an answer counts: until the next one is due, and as much
// longer as a probe may be late on a busy node without the check asking for itself.
var answeredLately = vrrp.HAProxyProbe.Interval + vrrp.HAProxyProbe.Confirm

func newAnswers(dir *state.Dir) *answers {
	return &answers{dir: dir, last: dir.Answers(state.HAProxy{}), failed: make(chan string, 1)}
}

// run follows the haproxy job until ctx ends.
func (a *answers) run(ctx context.Context) error {
	changed, err := a.dir.Watch(ctx, state.HAProxy{})
	if err != nil {
		return err
	}
	go func() {
		for range changed {
			a.poll()
		}
	}()
	return nil
}

// poll has the check fail as soon as the haproxy job has found out that HAProxy serves no
// more. A crash is for the check to find out, and an HAProxy that is being stopped serves until the
// VIPs have left.
func (a *answers) poll() {
	s, err := state.Read[state.HAProxy](a.dir)
	serves := err == nil && s != nil && s.Serving
	before := a.serves.Swap(serves)
	select {
	case <-a.failed: // it is old
	default:
	}
	if before && !serves && s != nil && !s.Restarting && !s.Leaving {
		a.failed <- s.Why
	}
}

// use has the check of HAProxy among others rest on the answers.
func (a *answers) use(list []health.Check) {
	for i := range list {
		if list[i].Name == health.FactHAProxy {
			list[i].Probe, list[i].Failed = a.probe(list[i].Probe), a.failed
		}
	}
}

// probe asks, by that probe, only if HAProxy has not answered the haproxy job lately.
func (a *answers) probe(ask func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if a.serves.Load() {
			if ago, err := a.last.Ago(); err == nil && ago <= answeredLately {
				return nil
			}
		}
		return ask(ctx)
	}
}
