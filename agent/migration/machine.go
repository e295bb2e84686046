// Package migration moves the nodes of a cluster to other VRRP settings at one instant
// (docs/upgrade.md): nodes that differ in these do not hear each other, and both hold
// the VIP.
//
// It is a state machine without clocks, files or sockets. A Machine is told what its node
// knows, and says which settings the node has, which configuration it runs, what it
// announces to the others, which adverts it is to listen for and when to look again.
package migration

import (
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// Target are the VRRP settings that the files of a node want, and when.
type Target struct {
	Settings v1alpha1.VRRPSettings
	// Planned is the instant of the mode file; zero for none.
	Planned time.Time
	// Without are nodes that the others do not wait for.
	Without []string
	// Problem says what is wrong with the mode file; then Settings are those of
	// cluster.yaml, and the node moves nowhere.
	Problem error
}

// Input is what a node knows when it looks.
type Input struct {
	// Now is by the wall clock, Up by the monotonic one since some moment.
	Now time.Time
	Up  time.Duration
	// Self is the node's name.
	Self   string
	Target Target
	// Initial are the settings of a node that never ran any, Kept those that it ran last;
	// nil if it never did.
	Initial v1alpha1.VRRPSettings
	Kept    *v1alpha1.VRRPSettings
	// Unregistered says that the node is not in the cluster's list, Stale that no API
	// server vouches for the list, Listed that it has the node.
	Unregistered, Stale, Listed bool
	// OpenShift says that the machine config operator has a say.
	OpenShift bool
	// Nodes are all of the cluster, this one included, by name.
	Nodes []Node
	// Unready is why this node is not ready to move, and Refused what keepalived's parser
	// has against the new configuration; empty if it is ready. They count while the
	// machine is Pending.
	Unready, Refused string
	// Conf is what this node runs with some settings.
	Conf func(v1alpha1.VRRPSettings) *keepalived.Conf
	// Held are the addresses of this node, VIPs among them.
	Held []netip.Addr
	// Heard are the adverts of peers.
	Heard Heard
}

// Output is what comes of an Input.
type Output struct {
	// Settings are those of the node now. Conf is what it runs: of these settings, or of
	// the old and the new ones during a move; nil while they are not known.
	Settings v1alpha1.VRRPSettings
	Conf     *keepalived.Conf
	// LeftOut says that the mode file leaves this node out.
	LeftOut bool
	// Announce is what the node is to tell the others from now on; nil for what it told them
	// last.
	Announce *Announcement
	// Listen are the instances whose adverts are to be heard from now on.
	Listen []Pair
	// Again is when to look again, from now; 0 for when that was said last.
	Again time.Duration
	// Status is how far the move is; nil where there is none to make.
	Status *state.Migration
	Counts Counts
	// Log is what happened.
	Log []Line
}

// Line is one of a log, as for slog.Logger.Log.
type Line struct {
	Level slog.Level
	Text  string
	Args  []any
}

func (o *Output) log(level slog.Level, text string, args ...any) {
	o.Log = append(o.Log, Line{level, text, args})
}

// Counts are what became of moves.
type Counts struct{ Moved, Back int }

// Machine has the VRRP settings of a node, and how far it has come on the way to others.
// The zero value is that of an agent that has just started.
type Machine struct {
	running *v1alpha1.VRRPSettings // nil until it is known
	// learning is since when it is being found out what the others run.
	learning  time.Time
	agreement agreement
	instants  instants
	move      *move // the last one, as long as it matters
	// cooldown is until when the node is not ready to try again, and why.
	cooldown    time.Time
	cooldownWhy string

	ignored   bool      // adverts with the new settings count for nothing, which was said
	lateSince time.Time // most others say since then that they have moved
	waits     string    // what is waited for, as it was logged
	counts    Counts
	status    *state.Migration
}

const (
	// heardTime is how old an advert may be to count, however busy the node is.
	heardTime = 2 * time.Second
	// lateAnnouncementTime is for how long most others must have said that they moved
	// before it counts without an advert: they may have gone back since, which they say
	// later.
	lateAnnouncementTime = 10 * time.Second
	// learnTime is for how long, over the time that a holder has for its adverts, a node
	// listens for what the others run before it goes by what it ran itself.
	learnTime = 500 * time.Millisecond
)

// moving says that a move has begun and is not done.
func (m *Machine) moving() bool { return m.move != nil && m.move.done.IsZero() }

// Pending says whether the node may have to move, so that Unready and Refused of the
// input count.
func (m *Machine) Pending(in *Input) bool {
	running := m.running
	if running == nil {
		running = in.base()
	}
	t := &in.Target
	return !m.moving() && (t.Problem != nil || *running != t.Settings && !understands(*running, t.Settings))
}

// base are the settings that the node ran last, or began with.
func (in *Input) base() *v1alpha1.VRRPSettings {
	if in.Kept != nil {
		return in.Kept
	}
	return &in.Initial
}

func (in *Input) holds(vip string) bool {
	return slices.ContainsFunc(in.Held, func(a netip.Addr) bool { return a.String() == vip })
}

// Step takes in what the node knows now.
func (m *Machine) Step(in Input) (out Output) {
	m.step(&in, &out)
	if s := m.status; s != nil {
		copied := *s
		out.Status = &copied
	}
	out.Counts = m.counts
	return out
}

func (m *Machine) step(in *Input, out *Output) {
	t := &in.Target
	out.Settings = in.Initial
	if out.LeftOut = slices.Contains(t.Without, in.Self); out.LeftOut {
		m.stayOut(t, out)
		return
	}
	if m.running == nil && !m.learn(in, out) {
		return
	}
	if understands(*m.running, t.Settings) && t.Problem == nil && !m.moving() {
		*m.running = t.Settings // timing alone, which VRRPv3's backups take from the holder
	}
	m.review(in, out)
	if !m.moving() {
		m.consider(in, out)
	}
	s := m.move
	if !m.moving() {
		out.Settings, out.Conf, out.Listen = *m.running, in.Conf(*m.running), m.listen(in, *m.running)
		return
	}
	old, fresh := in.Conf(s.from), in.Conf(s.to)
	out.Listen = pairsOf(old, fresh)
	heard := in.Heard.of(out.Listen)
	list := units(old, fresh)
	if again := s.step(in.Now, list, in.holds, func(i string) time.Time { return heard.last[i][newSettings] }); again > 0 {
		out.Again = again
		out.Settings, out.Conf = s.from, s.mix(old, fresh)
		return
	}
	running := s.to
	m.running, m.status = &running, nil
	out.Again = spare // and tell the others
	out.log(slog.LevelInfo, "this node has other VRRP settings", "from", s.from.String(), "to", s.to.String())
	out.Settings, out.Conf = s.to, fresh
}

// stayOut tells the others that this node takes no part. What they run by the time that
// it does again it finds out as if it started then.
func (m *Machine) stayOut(t *Target, out *Output) {
	m.running, m.move, m.agreement, m.instants = nil, nil, agreement{}, nil
	m.status = &state.Migration{Target: t.Settings, WaitsFor: "this node: " + vrrp.IdleWithout}
	m.logWait(m.status.WaitsFor, out)
	out.Announce = &Announcement{Running: "nothing", Why: vrrp.IdleWithout}
}

// learn finds out which VRRP settings the node is to have when its agent starts. What it
// ran last need not be what the others run now: it may have been away when they moved.
func (m *Machine) learn(in *Input, out *Output) (known bool) {
	base, wanted := *in.base(), in.Target.Settings
	choose := func(v v1alpha1.VRRPSettings, why string) bool {
		if v != base || why != "" {
			out.log(slog.LevelInfo, "VRRP settings of this node", "settings", v.String(), "because", why)
		}
		m.running, m.learning = &v, time.Time{}
		return true
	}
	if base == wanted || understands(base, wanted) {
		return choose(base, "")
	}
	if in.Unregistered {
		if !m.learning.IsZero() {
			out.Listen = pairsOf(in.Conf(base), in.Conf(wanted))
		}
		return false // it is to stay out anyway, and the others are not known
	}
	says := func(v v1alpha1.VRRPSettings) (n int) {
		for _, o := range in.Nodes {
			if o.Name != in.Self && o.Holds && o.Announced.Running == v.String() {
				n++
			}
		}
		return n
	}
	switch there, here := says(wanted), says(base); {
	case in.Stale: // it may be old
	case there > 0 && here == 0:
		return choose(wanted, "the other nodes say so")
	case here > 0 && there == 0:
		return choose(base, "the other nodes say so")
	}
	out.Listen = pairsOf(in.Conf(base), in.Conf(wanted))
	heard := in.Heard.of(out.Listen)
	switch before, after := heard.any(oldSettings), heard.any(newSettings); {
	case after.After(before):
		return choose(wanted, "adverts of other nodes")
	case !before.IsZero():
		return choose(base, "adverts of other nodes")
	}
	if m.learning.IsZero() {
		m.learning = in.Now
	}
	wait := learnTime
	for _, p := range out.Listen {
		wait = max(wait, learnTime+DownTime(&p.Old), learnTime+DownTime(&p.New))
	}
	if left := wait - in.Now.Sub(m.learning); left > 0 {
		out.Again = left
		return false
	}
	if says(wanted) > says(base) {
		return choose(wanted, "most of the other nodes said so")
	}
	return choose(base, "no other node says otherwise")
}

// listen are the instances whose adverts may matter: as long as this node could follow
// the others, and while it may have to go back.
func (m *Machine) listen(in *Input, running v1alpha1.VRRPSettings) []Pair {
	from, to := running, in.Target.Settings
	if m.move != nil {
		from, to = m.move.from, m.move.to
	}
	if from == to || understands(from, to) {
		return nil
	}
	return pairsOf(in.Conf(from), in.Conf(to))
}
