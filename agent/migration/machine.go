// Package migration migrates the nodes of a cluster to other VRRP settings at one instant
// (docs/upgrade.md): nodes with different settings do not receive each other's adverts,
// and both hold the VIP.
//
// It is a state machine without clocks, files or sockets. A Machine gets the state of its
// node and returns the settings, the configuration to run, the announcement, the adverts
// to listen for, and the time of the next step.
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

// Target is the wanted VRRP settings in the files of a node, and the time of the migration.
type Target struct {
	Settings v1alpha1.VRRPSettings
	// Planned is the instant of the mode file; zero for none.
	Planned time.Time
	// Without names the nodes that the others do not wait for.
	Without []string
	// Problem is an error of the mode file; then Settings are those of cluster.yaml, and
	// the node does not migrate.
	Problem error
}

// Input is the state of a node for one step.
type Input struct {
	// Now is the wall clock, Up a monotonic clock.
	Now time.Time
	Up  time.Duration
	// Self is the node's name.
	Self   string
	Target Target
	// Initial are the settings of a node that never ran any, Kept the last ones; nil for
	// none.
	Initial v1alpha1.VRRPSettings
	Kept    *v1alpha1.VRRPSettings
	// Unregistered reports that the node is not in the cluster's list, Stale that no API
	// server vouches for the list, Listed that it contains the node.
	Unregistered, Stale, Listed bool
	// OpenShift reports that the machine config operator runs.
	OpenShift bool
	// Nodes are all nodes of the cluster, this one included, by name.
	Nodes []Node
	// Unready is why this node is not ready to migrate, Refused the error of keepalived's
	// parser for the new configuration; empty if ready. They count while the machine is
	// Pending.
	Unready, Refused string
	// Conf returns the configuration of this node with some settings.
	Conf func(v1alpha1.VRRPSettings) *keepalived.Conf
	// Held are the addresses of this node, VIPs included.
	Held []netip.Addr
	// Adverts holds the adverts of peers, and Peers names their senders.
	Adverts Adverts
	Peers   []v1alpha1.Peer
}

// Output is the result of a step.
type Output struct {
	// Settings are the current settings of the node. Conf is the configuration to run, a
	// mix of old and new settings during a migration; nil while they are not known.
	Settings v1alpha1.VRRPSettings
	Conf     *keepalived.Conf
	// ByModeFile reports that the mode file leaves this node out (without).
	ByModeFile bool
	// Announce is the announcement from now on; nil if unchanged.
	Announce *Announcement
	// Listen are the instances whose adverts to listen for.
	Listen []Pair
	// Again is the delay of the next step; 0 keeps the last one.
	Again time.Duration
	// Status is the progress of the migration; nil if none is pending.
	Status *state.Migration
	Counts Counts
	// Log holds the lines to log.
	Log []Line
}

// Line is a log line, as for slog.Logger.Log.
type Line struct {
	Level slog.Level
	Text  string
	Args  []any
}

func (o *Output) log(level slog.Level, text string, args ...any) {
	o.Log = append(o.Log, Line{level, text, args})
}

// Counts counts migrations by outcome.
type Counts struct{ Migrated, RolledBack int }

// Machine holds the VRRP settings of a node and its progress towards others. The zero
// value is that of an agent that has just started.
type Machine struct {
	running *v1alpha1.VRRPSettings // nil until known
	// learning is when the node began to find out what the others run.
	learning  time.Time
	agreement agreement
	instants  instants
	migration *migration // the last one, while it matters
	// cooldown is when the node may try again after a roll-back, and cooldownWhy the
	// reason.
	cooldown    time.Time
	cooldownWhy string

	ignored   bool      // logged that adverts with the new settings are ignored
	lateSince time.Time // when most others first announced that they have migrated
	waits     string    // reason to wait, as logged last
	counts    Counts
	status    *state.Migration
}

const (
	// maxAdvertAge is the greatest age of an advert that counts, on a busy node.
	maxAdvertAge = 2 * time.Second
	// lateAnnouncementTime is how long most others must have announced their migration before
	// it counts without adverts: they may have rolled back, and announce that later.
	lateAnnouncementTime = 10 * time.Second
	// learnTime is how long, beyond a holder's advert timeout, a starting node listens to
	// the others before it uses its last settings.
	learnTime = 500 * time.Millisecond
)

// migrating reports whether a migration is in progress.
func (m *Machine) migrating() bool { return m.migration != nil && m.migration.done.IsZero() }

// Pending reports whether the node may have to migrate, so that Unready and Refused of the
// input count.
func (m *Machine) Pending(in *Input) bool {
	running := m.running
	if running == nil {
		running = in.base()
	}
	t := &in.Target
	return !m.migrating() && (t.Problem != nil || *running != t.Settings && !understands(*running, t.Settings))
}

// base returns the settings that the node ran last, or the initial ones.
func (in *Input) base() *v1alpha1.VRRPSettings {
	if in.Kept != nil {
		return in.Kept
	}
	return &in.Initial
}

func (in *Input) holds(vip string) bool {
	return slices.ContainsFunc(in.Held, func(a netip.Addr) bool { return a.String() == vip })
}

// Step evaluates the current state of the node.
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
	if out.ByModeFile = slices.Contains(t.Without, in.Self); out.ByModeFile {
		m.stayOut(t, out)
		return
	}
	if m.running == nil && !m.learn(in, out) {
		return
	}
	if understands(*m.running, t.Settings) && t.Problem == nil && !m.migrating() {
		*m.running = t.Settings // only timing, which VRRPv3 backups learn from the holder
	}
	m.review(in, out)
	if !m.migrating() {
		m.consider(in, out)
	}
	s := m.migration
	if !m.migrating() {
		out.Settings, out.Conf, out.Listen = *m.running, in.Conf(*m.running), m.listen(in, *m.running)
		return
	}
	old, fresh := in.Conf(s.from), in.Conf(s.to)
	out.Listen = pairsOf(old, fresh)
	adverts := in.Adverts.matching(out.Listen)
	list := units(old, fresh)
	if again := s.step(in.Now, list, in.holds, func(i string) time.Time { return adverts.last[i][newSettings].at }); again > 0 {
		out.Again = again
		out.Settings, out.Conf = s.from, s.mix(old, fresh)
		return
	}
	running := s.to
	m.running, m.status = &running, nil
	out.Again = spare // to announce it
	out.log(slog.LevelInfo, "VRRP settings changed", "from", s.from.String(), "to", s.to.String())
	out.Settings, out.Conf = s.to, fresh
}

// stayOut announces that this node takes no part. When it takes part again, it learns the
// settings as after a start.
func (m *Machine) stayOut(t *Target, out *Output) {
	m.running, m.migration, m.agreement, m.instants = nil, nil, agreement{}, nil
	m.status = &state.Migration{Target: t.Settings, WaitsFor: "this node: " + vrrp.LeftOutByModeFile.Text()}
	m.logWait(m.status.WaitsFor, out)
	out.Announce = &Announcement{Running: "nothing", Why: vrrp.LeftOutByModeFile.Text()}
}

// learn determines the VRRP settings of a starting node. The last ones need not be those
// of the others: the node may have been away when they migrated.
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
		return false // it stays out anyway, and the others are not known
	}
	count := func(v v1alpha1.VRRPSettings) (n int) {
		for _, o := range in.Nodes {
			if o.Name != in.Self && o.Holds && o.Announced.Running == v.String() {
				n++
			}
		}
		return n
	}
	switch there, here := count(wanted), count(base); {
	case in.Stale: // may be outdated
	case there > 0 && here == 0:
		return choose(wanted, "the other nodes announced them")
	case here > 0 && there == 0:
		return choose(base, "the other nodes announced them")
	}
	out.Listen = pairsOf(in.Conf(base), in.Conf(wanted))
	adverts := in.Adverts.matching(out.Listen)
	switch before, after := adverts.any(oldSettings), adverts.any(newSettings); {
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
	if count(wanted) > count(base) {
		return choose(wanted, "most other nodes announced them")
	}
	return choose(base, "no other node announced others")
}

// listen returns the instances whose adverts may matter: while this node could follow the
// others, and while it may have to roll back.
func (m *Machine) listen(in *Input, running v1alpha1.VRRPSettings) []Pair {
	from, to := running, in.Target.Settings
	if m.migration != nil {
		from, to = m.migration.from, m.migration.to
	}
	if from == to || understands(from, to) {
		return nil
	}
	return pairsOf(in.Conf(from), in.Conf(to))
}
