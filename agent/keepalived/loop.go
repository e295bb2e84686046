package keepalived

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/vipgen/vipgen/agent/daemon"
	"github.com/vipgen/vipgen/agent/keepalived/membership"
	"github.com/vipgen/vipgen/agent/keepalived/neighbours"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/events"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/templates"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// apply brings everything in line with what is known now. It says whether
// keepalived was started, stopped or told to read its configuration.
func (j *Job) apply(ctx context.Context) (changed bool, err error) {
	d, err := j.decide()
	j.looping.deciding.Error(j.Log, err, "the node stays as it is", "it is known again what the node is to run")
	if err != nil {
		return false, err
	}
	err = j.checks.follow(&d.cluster.Spec, d.node.Role, d.node.Labels)
	j.checks.failing.Error(j.Log, err, "this node is not checked anew", "this node is checked again")
	if err != nil && d.takesPart() {
		return false, err
	}
	j.leaveOut(d.conf.Idle)
	j.recordVIPs(d)
	conf, err := j.render(d.conf)
	target := daemon.Target{Conf: conf, Err: err, Stopped: !d.takesPart()}
	if target.Stopped {
		changed, err = j.daemon.Apply(ctx, target)
		// Also when it did not run: what an earlier run left is still there.
		j.guard.end()
		j.queues.Limit(nil)
		j.tickler.Follow(nil)
		return changed, errors.Join(err, j.clean(ctx))
	}
	j.queues.Limit(d.conf.Instances)
	j.tickler.Follow(tickled(d))
	j.guard.admit(guardGroups(append(j.adverts.instances(), d.conf.Instances...), d.node.Peers))
	if changed, err = j.daemon.Apply(ctx, target); err != nil {
		return changed, err
	}
	j.guard.applied(time.Now())
	err = writeSettings(j.below(keptSettings), *d.node.VRRP)
	j.looping.settings.keeping.Error(j.Log, err, "the settings of VRRP in force will not be remembered", "the settings of VRRP in force are remembered again")
	return changed, err
}

// recordVIPs stores the VIPs that keepalived is about to get, and forgets those that
// are neither the cluster's nor on this node any more.
func (j *Job) recordVIPs(d *decision) {
	held := j.record.Addresses()
	here := append(d.vips(), held...)
	var vips []netip.Addr
	for _, i := range d.conf.Instances {
		vips = append(vips, i.VIP.Addr())
	}
	err := j.recorded.note(vips, func(a netip.Addr) bool { return held != nil && !slices.Contains(here, a) })
	j.recorded.failing.Warn(j.Log, err, "VIPs that change while keepalived is killed may be left here", "VIPs that may be left here are remembered again")
}

// leaveOut logs which VIPs are left out, and why, when that changed.
func (j *Job) leaveOut(why []string) {
	if !slices.Equal(why, j.looping.idle) {
		j.looping.idle = slices.Clone(why)
		j.Log.Info("VIPs that this node leaves out", "why", why)
	}
}

// decide looks at everything.
func (j *Job) decide() (*decision, error) {
	f, err := j.Source.Facts()
	if err != nil {
		return nil, err
	}
	spec := &f.Cluster.Spec
	var conf *keepalived.Conf
	if spec.LoadBalancer == v1alpha1.LoadBalancerInCluster {
		var v v1alpha1.VRRPSettings
		v, conf = j.elect(f)
		f.Node.VRRP = &v
	}
	j.shared.mu.Lock()
	over, resumed := j.shared.over, j.shared.resumed
	j.shared.mu.Unlock()
	d := decide(f, conf, over)
	n := &membership.Node{
		Facts: f, Conf: d.conf, Wanted: j.daemon.Wanted(), Since: j.record.Since, RemoveVIPs: func() { j.removeAll(d) },
	}
	switch {
	case j.looping.settings.leftOut:
		d.conf.Disable(vrrp.IdleWithout)
		j.members.Suspend()
	case j.watching.lifetime == nil:
		j.members.Evaluate(n)
	case resumed:
		j.members.Resume(n)
	}
	j.defence.Follow(d.conf.Instances)
	routers(j.board, spec, f.Node, j.Source.Nodes)
	j.shared.mu.Lock()
	j.shared.now, j.shared.migration, j.shared.moves = d, j.looping.settings.migration, j.looping.settings.moves
	j.shared.mu.Unlock()
	return d, nil
}

// render gives keepalived.conf.
func (j *Job) render(conf *keepalived.Conf) ([]byte, error) {
	text, err := os.ReadFile(j.below(v1alpha1.KeepalivedTemplate))
	if err != nil {
		return nil, err
	}
	return templates.Execute("keepalived.conf.tmpl", string(text), conf)
}

// starting prepares a start of keepalived.
func (j *Job) starting(ctx context.Context) error {
	d := j.shared.decided()
	if d != nil {
		for _, i := range d.conf.Instances {
			neighbours.Prime(i.Peers)
		}
	}
	j.record.Add(events.KeepalivedStarting)
	return j.clean(ctx)
}

// died cleans up after a keepalived that ended although it was wanted.
func (j *Job) died(ctx context.Context) error {
	j.record.Add(events.KeepalivedDied)
	return j.clean(ctx)
}

// clean removes VIPs that keepalived, which does not run now, did not (hard case
// 1).
func (j *Job) clean(context.Context) error {
	d := j.shared.decided()
	if d == nil {
		return nil
	}
	return j.removeAll(d)
}

// removeAll removes the VIPs of a decision, and those of before.
func (j *Job) removeAll(d *decision) error {
	err := removeVIPs(j.recorded.with(d.vips()), j.Log)
	j.cleaning.Error(j.Log, err, "a VIP cannot be removed from this node, which does not hold it", "the VIPs are removed from this node")
	return err
}
