package keepalived

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/netdump"
	"github.com/vipgen/vipgen/internal/ticker"
	"github.com/vipgen/vipgen/templates/keepalived"
)

const (
	// lookEvery is how often it is looked at what nobody announces, on the
	// bootstrap.
	lookEvery = 250 * time.Millisecond
	// sayEvery is how often the job says how things stand, if that is new.
	sayEvery = time.Second
)

// watch looks at what is known of the node, and says how things stand.
func (j *Job) watch(ctx context.Context) {
	every := sayEvery
	if j.watching.lifetime != nil {
		every = lookEvery
	}
	tick := ticker.New(0)
	defer tick.Stop()
	for due := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		j.late(time.Since(due))
		due = time.Now().Add(tick.Reset(every))
		if j.watching.lifetime != nil && j.watching.lifetime.look(time.Now(), j.board.Get) {
			said := "the API server of this bootstrap host is ready again: keepalived may run again"
			if j.watching.lifetime.over {
				said = "the API server of this bootstrap host has gone: keepalived stops until it is ready again"
			}
			j.Log.Info(said)
			if err := j.watching.lifetime.remember(); err != nil {
				j.Log.Error("whether the API server of this bootstrap host has gone will not be remembered", "error", err)
			}
			j.shared.mu.Lock()
			j.shared.over, j.shared.resumed = j.watching.lifetime.over, j.watching.lifetime.resumed
			j.shared.mu.Unlock()
			j.loop.Trigger()
		}
		j.watching.scheduling.look(j.daemon.Process.PID() != 0, j.Log)
		j.guard.look(time.Now())
		j.publish()
		j.watching.watchdog.Reset()
	}
}

// see notes which VIPs are on this node. It says whether keepalived has lost an
// address that it hears adverts at: it would take the VIP within a few of them.
func (j *Job) see() bool {
	list, err := addresses()
	if err != nil {
		return false // the next change, or resync, tries again
	}
	var held []netip.Addr
	for _, a := range list {
		held = append(held, netdump.IP(a))
	}
	now := time.Now()
	j.shared.mu.Lock()
	defer j.shared.mu.Unlock()
	since := make(map[netip.Addr]time.Time, len(held))
	for _, a := range held {
		if since[a] = now; !j.shared.since[a].IsZero() {
			since[a] = j.shared.since[a]
		}
	}
	came := j.shared.came(held)
	j.announcer.Announce(came)
	j.tickler.See(held, came)
	j.recordAddresses(j.shared.held, held)
	j.shared.held, j.shared.since = held, since
	if d := j.shared.now; d != nil {
		if j.shared.tally == nil {
			j.shared.tally = tally{}
		}
		j.shared.tally.look(now, d.vips(), held)
	}
	return j.shared.now != nil && deaf(j.shared.now.conf.Instances, held)
}

// publish says how things stand.
func (j *Job) publish() {
	s := state.Keepalived{Wanted: j.daemon.Wanted(), Daemon: j.daemon.Status(), Facts: j.board.Facts(), ClusterProblem: j.Source.Problem()}
	s.Scheduling = string(j.watching.scheduling.policy)
	s.Guard = j.guard.state()
	holders := j.watching.dump.look()
	j.shared.mu.Lock()
	if d := j.shared.now; d != nil {
		s.Idle, s.VRRP, s.Migration, s.Moves = d.conf.Idle, d.node.VRRP, j.shared.migration, j.shared.moves
		s.Instances = instances(d.conf, j.files.Values(), j.shared.held)
		for i := range s.Instances {
			heldBy(&s.Instances[i], holders, d.node.Peers)
			s.Instances[i].Clients = j.tickler.Known(s.Instances[i].VIP)
		}
	}
	j.shared.mu.Unlock()
	before := j.watching.told.Swap(&s)
	j.recordChanges(before, &s)
	for _, i := range s.Instances {
		if i.Holds != holds(before, i.VIP) {
			j.Log.Info("VIP", "vip", i.VIP, "heldHere", i.Holds, "priority", i.Priority)
		}
	}
	j.watching.telling.Error(j.Log, j.State.Publish(s), "the other jobs cannot be told how keepalived is", "the other jobs can be told again")
}

// came are the VIPs among addresses that were not on this node before.
func (s *shared) came(held []netip.Addr) []netip.Addr {
	if s.now == nil {
		return nil
	}
	return slices.DeleteFunc(s.now.vips(), func(vip netip.Addr) bool {
		return !slices.Contains(held, vip) || slices.Contains(s.held, vip)
	})
}

// announceHeld announces the VIPs of a configuration that are on this node.
func (j *Job) announceHeld(conf *keepalived.Conf) {
	held := j.shared.addresses()
	var vips []netip.Addr
	for _, i := range conf.Instances {
		if vip := i.VIP.Addr(); slices.Contains(held, vip) {
			vips = append(vips, vip)
		}
	}
	j.announcer.Announce(vips)
}
