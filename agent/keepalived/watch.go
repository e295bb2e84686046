package keepalived

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/vipgen/vipgen/agent/keepalived/membership"
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
		j.record.Late(time.Since(due))
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
	var vips []netip.Addr
	var instances []keepalived.Instance
	if d := j.shared.decided(); d != nil {
		vips, instances = d.vips(), d.conf.Instances
	}
	before, acquired := j.record.Observe(time.Now(), vips, held)
	j.announcer.Announce(acquired)
	j.tickler.See(held, acquired)
	j.record.Moves(instances, before, held)
	return membership.Deaf(instances, held)
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
		s.Instances = instances(d.conf, j.files.Values(), j.record.Addresses())
		for i := range s.Instances {
			heldBy(&s.Instances[i], holders, d.node.Peers)
			s.Instances[i].Clients = j.tickler.Known(s.Instances[i].VIP)
		}
	}
	j.shared.mu.Unlock()
	before := j.watching.told.Swap(&s)
	j.record.Changes(before, &s)
	for _, i := range s.Instances {
		if i.Holds != holds(before, i.VIP) {
			j.Log.Info("VIP", "vip", i.VIP, "heldHere", i.Holds, "priority", i.Priority)
		}
	}
	j.watching.telling.Error(j.Log, j.State.Publish(s), "the other jobs cannot be told how keepalived is", "the other jobs can be told again")
}

// announceHeld announces the VIPs of a configuration that are on this node.
func (j *Job) announceHeld(conf *keepalived.Conf) {
	held := j.record.Addresses()
	var vips []netip.Addr
	for _, i := range conf.Instances {
		if vip := i.VIP.Addr(); slices.Contains(held, vip) {
			vips = append(vips, vip)
		}
	}
	j.announcer.Announce(vips)
}
