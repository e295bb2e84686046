package keepalived

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/vipgen/vipgen/agent/daemon"
	"github.com/vipgen/vipgen/agent/gate"
	"github.com/vipgen/vipgen/agent/keepalived/membership"
	"github.com/vipgen/vipgen/agent/keepalived/neighbours"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/events"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/templates"
)

// apply applies a new decision. It reports whether keepalived was started, stopped or
// reloaded.
func (j *Job) apply(ctx context.Context) (changed bool, err error) {
	d, err := j.decide()
	j.settings.deciding.Error(j.Log, err, "cannot decide on the configuration of keepalived: the current one stays", "configuration of keepalived decided again")
	if err != nil {
		return false, err
	}
	err = j.checks.Follow(d.cluster.Spec.Elected(), d.node.Role, d.node.Labels)
	if err != nil && d.takesPart() {
		return false, err
	}
	j.logLeftOut(d.conf.Idle)
	held := j.record.nodeAddresses()
	here := append(d.vips(), held...)
	j.vips.add(vipsOf(d.conf), func(a netip.Addr) bool { return held != nil && !slices.Contains(here, a) })
	conf, err := templates.ExecuteFile(j.below(v1alpha1.KeepalivedTemplate), d.conf)
	target := daemon.Target{Conf: conf, Err: err, Stopped: !d.takesPart()}
	if target.Stopped {
		changed, err = j.daemon.Apply(ctx, target)
		// Even if it did not run: an earlier run may have left rules and VIPs.
		j.guard.end()
		j.neighbours.Limit(nil)
		j.tickler.Follow(nil)
		return changed, errors.Join(err, j.clean(ctx))
	}
	j.neighbours.Limit(d.conf.Instances)
	j.tickler.Follow(tickled(d))
	j.guard.admit(guardGroups(append(j.settings.adverts.instances(), d.conf.Instances...), d.node.Peers))
	if changed, err = j.daemon.Apply(ctx, target); err != nil {
		return changed, err
	}
	j.guard.applied(time.Now())
	err = writeSettings(j.below(keptSettings), *d.node.VRRP)
	j.settings.storing.Error(j.Log, err, "cannot store the VRRP settings in force", "VRRP settings in force stored again")
	return changed, err
}

// logLeftOut logs the reasons for left-out VIPs when they change.
func (j *Job) logLeftOut(why []string) {
	if !slices.Equal(why, j.settings.leftOut) {
		j.settings.leftOut = slices.Clone(why)
		j.Log.Info("VIPs left out", "why", why)
	}
}

// decide returns the configuration that the node should run now.
func (j *Job) decide() (*decision, error) {
	f, err := j.Source.Facts()
	if err != nil {
		return nil, err
	}
	if before := j.decided.Load(); before != nil && before.takesPart() {
		keepLastPeers(f.Node, before.node.Peers)
	}
	chosen := j.settings.last
	chosen.conf = nil
	if f.Cluster.Spec.ByVRRP() {
		chosen = j.chooseSettings(f)
		f.Node.VRRP = &chosen.settings
	}
	over, resumed := j.bootstrap.State()
	d := decide(f, chosen, over)
	n := &membership.Node{
		Facts: f, Conf: d.conf, Wanted: j.daemon.Wanted(), Since: j.record.heldSince, RemoveVIPs: func() { j.vips.remove(d.vips()) },
	}
	switch {
	case chosen.byModeFile:
		d.conf.LeaveOutAll(vrrp.LeftOutByModeFile)
		j.members.Suspend()
	case j.bootstrap == nil:
		j.members.Evaluate(n)
	case resumed:
		j.members.Resume(n)
	}
	j.neighbours.Defend(d.conf.Instances)
	gate.SetRouters(j.checks.Board, f.Cluster.Spec.Elected(), f.Node, j.Source.Nodes)
	j.decided.Store(d)
	return d, nil
}

func (j *Job) starting(ctx context.Context) error {
	if d := j.decided.Load(); d != nil {
		for _, i := range d.conf.Instances {
			neighbours.Prime(i.Peers)
		}
	}
	j.record.add(events.KeepalivedStarting)
	return j.clean(ctx)
}

// died cleans up after a keepalived that ended although it was wanted.
func (j *Job) died(ctx context.Context) error {
	j.record.add(events.KeepalivedDied)
	return j.clean(ctx)
}

// clean removes the VIPs that a stopped keepalived left behind (hard case 1).
func (j *Job) clean(context.Context) error {
	d := j.decided.Load()
	if d == nil {
		return nil
	}
	return j.vips.remove(d.vips())
}
