package keepalived

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/vipgen/vipgen/agent/daemon"
	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/nodes"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/templates"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// electing has the VRRP settings of the node, and how far it has come on the way to
// others. All of it is of the loop's goroutine.
type electing struct {
	running *v1alpha1.VRRPSettings // nil until it is known
	// learning is since when it is being found out what the others run.
	learning time.Time
	agreement
	moments moments
	shift   *shift // the last one, as long as it matters
	// cooldown is until when the node is not ready to try again, and why.
	cooldown    time.Time
	cooldownWhy string

	// leftOut says that the mode file leaves this node out, and ignored that adverts with
	// the new settings count for nothing, which was said.
	leftOut, ignored bool

	checked    string // the configuration that keepalived's parser was asked about
	checkedErr error
	refused    string    // what was wrong with the mode file, as it was counted
	lateSince  time.Time // most others say since then that they have moved
	said       string    // what is waited for, as it was logged
	timer      *time.Timer
	// What happened, for the metrics.
	counts state.Moves
	status *state.Migration
}

// heardTime is how old an advert may be to count, however busy the node is.
const heardTime = 2 * time.Second

// lateAnnouncementTime is for how long most others must have said that they moved before it
// counts without an advert: they may have gone back since, which they say later.
const lateAnnouncementTime = 10 * time.Second

// learnTime is for how long, over the time that a holder has for its adverts, a node
// listens for what the others run before it goes by what it ran itself.
const learnTime = 500 * time.Millisecond

// elect decides on the VRRP settings of the node, and sees to it that it moves with
// the others. It gives the configuration to run, nil while it is not known which.
func (j *Job) elect(f *facts.Facts) (settings v1alpha1.VRRPSettings, conf *keepalived.Conf) {
	e, spec := &j.electing, &f.Cluster.Spec
	t := readTarget(j.Root, spec)
	j.noteModeFile(t.problem)
	in := func(v v1alpha1.VRRPSettings) *keepalived.Conf {
		n := *f.Node
		n.VRRP = &v
		return keepalived.New(f.Cluster, &n)
	}
	if j.lifetime != nil { // no node of the cluster: it keeps the settings that it began with
		v := inForce(spec.VRRP, readSettings(j.below(keptSettings)))
		return v, in(v)
	}
	if e.leftOut = slices.Contains(t.without, f.Node.Name); e.leftOut {
		j.stayOut(t)
		return spec.VRRP.Initial(), nil
	}
	if e.running == nil && !j.learn(f, t.settings, in) {
		return spec.VRRP.Initial(), nil
	}
	running := *e.running
	if understands(running, t.settings) && t.problem == nil && (e.shift == nil || !e.shift.done.IsZero()) {
		running = t.settings // timing alone, which VRRPv3's backups take from the holder
		e.running = &running
	}
	now := time.Now()
	j.review(now, in)
	if e.shift == nil || !e.shift.done.IsZero() {
		j.consider(f, t, now, in)
	}
	running = *e.running
	s := e.shift
	if s == nil || !s.done.IsZero() {
		e.listen(j, f, running, t.settings, in)
		return running, in(running)
	}
	old, fresh := in(s.from), in(s.to)
	list := units(old, fresh)
	again := s.step(now, list, j.holds, func(i string) time.Time { return j.wire.last(i, newSettings) })
	if again > 0 {
		j.lookAgain(again)
		return s.from, s.mix(old, fresh, list)
	}
	e.running = &s.to
	e.status = nil
	j.announceHeld(fresh) // others may have had the VIP for a moment
	j.lookAgain(spare)    // and tell the others
	j.Log.Info("this node has other VRRP settings", "from", s.from.String(), "to", s.to.String())
	return s.to, fresh
}

// holds says whether a VIP is on this node.
func (j *Job) holds(vip string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.ContainsFunc(j.held, func(a netip.Addr) bool { return a.String() == vip })
}

// learn finds out which VRRP settings the node is to have when its agent starts. What it ran
// last need not be what the others run now: it may have been away when they moved.
func (j *Job) learn(f *facts.Facts, wanted v1alpha1.VRRPSettings, in func(v1alpha1.VRRPSettings) *keepalived.Conf) (known bool) {
	e := &j.electing
	base := f.Cluster.Spec.VRRP.Initial()
	if kept := readSettings(j.below(keptSettings)); kept != nil {
		base = *kept
	}
	choose := func(v v1alpha1.VRRPSettings, why string) bool {
		if v != base || why != "" {
			j.Log.Info("VRRP settings of this node", "settings", v.String(), "because", why)
		}
		e.running, e.learning = &v, time.Time{}
		return true
	}
	if base == wanted || understands(base, wanted) {
		return choose(base, "")
	}
	if f.Node.Unregistered {
		return false // it is to stay out anyway, and the others are not known
	}
	var list nodes.Snapshot
	if j.Source.Nodes != nil {
		list = j.Source.Nodes.Current()
	}
	others := electors(f, &list)
	says := func(v v1alpha1.VRRPSettings) (n int) {
		for _, o := range others {
			if o.name != f.Node.Name && o.holds && o.announced.Running == v.String() {
				n++
			}
		}
		return n
	}
	switch there, here := says(wanted), says(base); {
	case list.Stale: // it may be old
	case there > 0 && here == 0:
		return choose(wanted, "the other nodes say so")
	case here > 0 && there == 0:
		return choose(base, "the other nodes say so")
	}
	pairs := pairsOf(in(base), in(wanted))
	j.wire.follow(pairs, addressesOf(f.Node.Peers))
	switch before, after := j.wire.any(oldSettings), j.wire.any(newSettings); {
	case after.After(before):
		return choose(wanted, "adverts of other nodes")
	case !before.IsZero():
		return choose(base, "adverts of other nodes")
	}
	if e.learning.IsZero() {
		e.learning = time.Now()
	}
	wait := learnTime
	for _, p := range pairs {
		wait = max(wait, learnTime+downTime(&p.old), learnTime+downTime(&p.new))
	}
	left := wait - time.Since(e.learning)
	if left > 0 {
		j.lookAgain(left)
		return false
	}
	if says(wanted) > says(base) {
		return choose(wanted, "most of the other nodes said so")
	}
	return choose(base, "no other node says otherwise")
}

func addressesOf(peers []v1alpha1.Peer) (out []netip.Addr) {
	for _, p := range peers {
		out = append(append(out, p.Addresses...), p.Elsewhere...)
	}
	return out
}

// electors are the nodes of the cluster as this one sees them, by name.
func electors(f *facts.Facts, list *nodes.Snapshot) (out []elector) {
	spec := &f.Cluster.Spec
	holds := map[string]bool{}
	for _, p := range append(slices.Clone(list.Peers), list.Self) {
		holds[p.Name] = slices.ContainsFunc(spec.Groups, func(g v1alpha1.Group) bool { return spec.Hosts(&g, p.Role, p.Labels) })
	}
	for _, u := range list.Updates {
		w, _ := decodeAnnouncement(u.VRRP)
		out = append(out, elector{name: u.Name, update: u.Update, holds: holds[u.Name], announced: w})
	}
	return out
}

// listen hears what the others say on the wire while that may matter: as long as
// this node could follow them, and while it may have to go back.
func (e *electing) listen(j *Job, f *facts.Facts, running, wanted v1alpha1.VRRPSettings, in func(v1alpha1.VRRPSettings) *keepalived.Conf) {
	from, to := running, wanted
	if e.shift != nil {
		from, to = e.shift.from, e.shift.to
	}
	if from == to || understands(from, to) {
		j.wire.follow(nil, nil)
		return
	}
	j.wire.follow(pairsOf(in(from), in(to)), addressesOf(f.Node.Peers))
}

// review looks at the move that was made last: whether all others have moved too.
func (j *Job) review(now time.Time, in func(v1alpha1.VRRPSettings) *keepalived.Conf) {
	e := &j.electing
	s := e.shift
	switch {
	case s == nil || s.done.IsZero():
		return
	case now.Sub(s.began) > guardTime:
		e.shift = nil
		return
	case s.all:
		return // it went with the others, one way or the other
	}
	list := units(in(s.from), in(s.to))
	lagging := s.lagging(list, func(i string) time.Time { return j.wire.last(i, oldSettings) })
	if lagging == "" {
		j.lookAgain(reviewTime) // adverts that go on as before are no news
		return
	}
	j.Log.Error("another node did not move: this one goes back", "instance", lagging, "from", s.to.String(), "to", s.from.String())
	e.counts.Back++
	e.cooldown, e.cooldownWhy = now.Add(cooldownTime), "it went back at "+now.UTC().Format(time.RFC3339)+" because adverts of "+s.from.String()+" went on ("+lagging+")"
	from := s.from
	e.running, e.shift = &from, &shift{from: s.to, to: s.from, began: now, all: true, moved: map[string]bool{}}
	e.agreement = agreement{}
}

// consider looks at whether to move now, and tells the others how this node stands.
func (j *Job) consider(f *facts.Facts, t target, now time.Time, in func(v1alpha1.VRRPSettings) *keepalived.Conf) {
	e, list := &j.electing, nodes.Snapshot{}
	if j.Source.Nodes != nil {
		list = j.Source.Nodes.Current()
	}
	spec := &f.Cluster.Spec
	v := view{
		now: now, up: now.Sub(j.begun), self: f.Node.Name, running: *e.running, target: t.settings, planned: t.planned,
		fresh: !list.Stale && list.Registered, nodes: without(electors(f, &list), t.without),
		openShift: spec.VRRP.Start != nil || slices.ContainsFunc(list.Updates, func(u nodes.NodeUpdate) bool { return u.CurrentConfig != "" || u.DesiredConfig != "" }),
	}
	pending := v.running != v.target && !understands(v.running, v.target) || t.problem != nil
	if pending {
		if !e.cooldown.After(now) {
			e.shift = nil // the last move is another matter
		}
		v.unready = j.unready(f, t, now, v.openShift, list.Bootstrap, in)
	}
	out := e.agreement.look(v)
	if t.problem != nil {
		out.settled, out.waits = false, v.unready
		out.say = announcement{Running: v.running.String(), Why: v.unready}
	}
	if j.Source.Nodes != nil {
		j.Source.Nodes.Announce(out.say.encode())
	}
	if out.settled {
		e.status, e.moments, e.ignored = nil, nil, false
		j.sayWait("")
		return
	}
	e.remember(&v, out)
	e.status = &state.Migration{Target: t.settings, Ready: v.unready == "", WaitsFor: out.waits, At: out.at, Agreed: out.agreed}
	j.sayWait(out.waits)
	if !out.late || v.unready != "" {
		e.lateSince = time.Time{}
	} else if e.lateSince.IsZero() {
		e.lateSince = now
	}
	begin := func(why string, all bool) {
		j.Log.Info("moving to other VRRP settings", "from", v.running.String(), "to", t.settings.String(), "because", why)
		e.shift = &shift{from: v.running, to: t.settings, began: now, all: all, moved: map[string]bool{}}
		e.agreement, e.moments = agreement{}, nil
		e.counts.Moved++
		e.status.Moving = true
	}
	e.listen(j, f, v.running, t.settings, in)
	heard := evidence{heard: now.Sub(j.wire.any(newSettings)) < heardTime, goesOn: j.wire.goesOn(now), said: v.moved() > 0}
	switch {
	case v.unready != "":
	case out.late && now.Sub(e.lateSince) >= lateAnnouncementTime:
		begin("most other nodes have", true)
	case e.moments.follow(now, heard):
		begin("another node has", false)
	case out.agreed && out.left <= 0 && out.left > -lateTime:
		begin("the instant has come", false)
	case out.agreed:
		j.lookAgain(max(out.left, 0))
	case !out.at.IsZero() || heard.heard:
		j.lookAgain(e.moments.next(now, time.Second))
	}
	if heard.heard && !e.ignored && e.moments != nil && !e.status.Moving {
		e.ignored = true
		j.Log.Warn("adverts of the new VRRP settings come before any node is known to have moved: ignoring them", "goOn", heard.goesOn)
	}
}

// lookAgain has the loop look again after that time, and not sooner on that account.
func (j *Job) lookAgain(after time.Duration) {
	if e := &j.electing; e.timer == nil {
		e.timer = time.AfterFunc(after, j.loop.Now)
	} else {
		e.timer.Reset(after)
	}
}

// sayWait logs what is waited for, when that changed.
func (j *Job) sayWait(what string) {
	if what != j.electing.said {
		j.electing.said = what
		if what != "" {
			j.Log.Info("moving to other VRRP settings has to wait", "for", what)
		}
	}
}

// unready says why this node is not ready to move, or nothing.
func (j *Job) unready(f *facts.Facts, t target, now time.Time, openShift bool, b nodes.Bootstrap, in func(v1alpha1.VRRPSettings) *keepalived.Conf) string {
	e := &j.electing
	control := f.Node.Role == v1alpha1.RoleMaster || f.Node.Role == v1alpha1.RoleArbiter
	switch {
	case t.problem != nil:
		return t.problem.Error()
	case j.Source.Problem() != "":
		return "cluster.yaml is not right"
	case control && b.Address.IsValid() && !b.Gone:
		return "the bootstrap, " + b.Address.String() + ", is still there"
	case control && openShift && !b.Gone:
		return "nobody says yet that the bootstrap is gone (ConfigMap etcd-endpoints in openshift-etcd)"
	case e.cooldown.After(now):
		return e.cooldownWhy + "; it tries again in " + e.cooldown.Sub(now).Round(time.Minute).String()
	}
	if err := j.tryOut(in(t.settings)); err != nil {
		return "the new configuration: " + err.Error()
	}
	return ""
}

// tryOut has keepalived's parser look at a configuration that is not to run yet.
func (j *Job) tryOut(conf *keepalived.Conf) error {
	text, err := os.ReadFile(j.below(v1alpha1.KeepalivedTemplate))
	if err != nil {
		return err
	}
	data, err := templates.Execute("keepalived.conf.tmpl", string(text), conf)
	if err != nil {
		return err
	}
	e := &j.electing
	if e.checked == string(data) && e.checkedErr == nil {
		return nil
	}
	e.checked, e.checkedErr = string(data), j.ask(data)
	return e.checkedErr
}

func (j *Job) ask(data []byte) error {
	candidate := j.below(keepDir + "/.vipgen-next.conf")
	defer os.Remove(candidate)
	if err := os.WriteFile(candidate, data, 0o644); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), daemon.DefaultCheckTimeout, fmt.Errorf("no answer within %v", daemon.DefaultCheckTimeout))
	defer cancel()
	return Check(j.Program)(ctx, candidate)
}
