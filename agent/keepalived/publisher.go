package keepalived

import (
	"log/slog"
	"sync/atomic"

	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/liveness"
)

// publisher publishes the state of the job.
type publisher struct {
	last     atomic.Pointer[state.Keepalived] // nil before the first
	watchdog liveness.Watchdog
	failing  logging.Transitions
}

// publish publishes a state, and logs VIPs that came or left.
func (p *publisher) publish(dir *state.Dir, s *state.Keepalived, log *slog.Logger) {
	before := p.last.Swap(s)
	for _, i := range s.Instances {
		if i.Holds != holds(before, i.VIP) {
			log.Info("VIP", "vip", i.VIP, "heldHere", i.Holds, "priority", i.Priority)
		}
	}
	p.failing.Error(log, dir.Publish(*s), "the other jobs cannot be told how keepalived is", "the other jobs can be told again")
	p.watchdog.Reset()
}
