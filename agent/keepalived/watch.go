package keepalived

import (
	"context"
	"net/netip"
	"time"

	"github.com/vipgen/vipgen/agent/keepalived/membership"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/netdump"
	"github.com/vipgen/vipgen/internal/ticker"
	"github.com/vipgen/vipgen/templates/keepalived"
)

const (
	// nodePollEvery is the poll interval for facts without notifications, stalePollEvery while no API
	// server lists the node (another one may hold its VIPs), bootstrapPollEvery on the bootstrap.
	nodePollEvery      = time.Second
	stalePollEvery     = 400 * time.Millisecond
	bootstrapPollEvery = 250 * time.Millisecond
)

func (j *Job) watch(ctx context.Context) {
	tick := ticker.New(0)
	defer tick.Stop()
	for due := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		j.record.delayed(time.Since(due))
		// A node that takes part while no API server lists it looks for other holders.
		d := j.decided.Load()
		apart := j.stale() && d != nil && d.takesPart()
		every := nodePollEvery
		switch {
		case j.bootstrap != nil:
			every = bootstrapPollEvery
		case apart:
			every = stalePollEvery
		}
		due = time.Now().Add(tick.Reset(every))
		if j.bootstrap.Poll(time.Now(), j.checks.Board.Get) || apart {
			j.loop.Trigger()
		}
		j.daemon.scheduling.poll(j.daemon.Process.PID() != 0)
		j.guard.poll(time.Now())
		j.publish()
	}
}

// stale reports whether no API server vouches for the list of nodes.
func (j *Job) stale() bool { return j.Source.Nodes != nil && j.Source.Nodes.Current().Stale }

// claimed has the list of nodes confirmed while another host claims a VIP that this node has: the node may
// have been cut off and removed from the cluster, and not know either yet (hard case 51).
func (j *Job) claimed(vip netip.Addr) {
	if _, held := j.record.heldSince(vip); held && j.Source.Nodes != nil {
		j.Source.Nodes.Confirm()
	}
}

// observe records the addresses of the node. It reports whether keepalived lost an
// address at which it receives adverts, or peers will send them to another one: it would
// acquire the VIP within a few adverts; or whether no API server lists the node since this
// moment, or it acquired a VIP meanwhile: another host may hold that.
func (j *Job) observe() bool {
	d := j.decided.Load()
	lost := d != nil && j.Source.Nodes != nil && membership.Lost(&d.cluster.Spec, d.self, j.Source.Nodes.Current().Self, d.conf.Instances)
	stale := j.stale()
	fresh := stale && !j.wasStale
	j.wasStale = stale
	list, err := nodeAddresses()
	if err != nil {
		return lost // the next change or resync tries again
	}
	held := lists.Map(list, netdump.IP)
	var vips []netip.Addr
	var instances []keepalived.Instance
	if d != nil {
		vips, instances = d.vips(), d.conf.Instances
	}
	before, acquired := j.record.observe(time.Now(), vips, held)
	j.neighbours.Announce(acquired)
	j.tickler.Observe(held, acquired)
	j.record.moved(instances, before, held)
	return lost || fresh || stale && len(acquired) > 0 || membership.LostSource(instances, held)
}

func (j *Job) publish() {
	s := state.Keepalived{
		Wanted: j.daemon.Wanted(), Daemon: j.daemon.Status(), Facts: j.checks.Board.Facts(), ClusterProblem: j.Source.Problem(),
		Scheduling: string(j.daemon.scheduling.policy), Guard: j.guard.state(),
	}
	holders := j.daemon.dump.poll()
	if d := j.decided.Load(); d != nil {
		s.LeftOut, s.VRRP, s.Migration, s.Migrations = d.conf.Idle, d.node.VRRP, d.migration, d.migrations
		s.Instances = instanceStates(d.conf, j.files.Values(), j.record.nodeAddresses())
		for i := range s.Instances {
			heldBy(&s.Instances[i], holders, d.node.Peers)
			s.Instances[i].Clients = j.tickler.Known(s.Instances[i].VIP)
		}
	}
	j.record.changed(j.publisher.last.Load(), &s)
	j.publisher.publish(j.State, &s, j.Log)
}
