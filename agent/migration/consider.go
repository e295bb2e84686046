package migration

import (
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/vipgen/vipgen/agent/state"
)

// review rolls back the last migration if another node did not migrate.
func (m *Machine) review(in *Input, out *Output) {
	s := m.migration
	switch {
	case s == nil || s.done.IsZero():
		return
	case in.Now.Sub(s.began) > guardTime:
		m.migration = nil
		return
	case s.all:
		return // migrated with the others, or back
	}
	old, fresh := in.Conf(s.from), in.Conf(s.to)
	adverts := in.Adverts.matching(pairsOf(old, fresh))
	instance := s.lagging(units(old, fresh), func(i string) time.Time { return adverts.last[i][oldSettings].at })
	if instance == "" {
		out.Again = reviewTime // unchanged adverts do not trigger an evaluation
		return
	}
	peer := in.nameOf(adverts.last[instance][oldSettings].from)
	out.log(slog.LevelError, "rolling back: a peer still advertises the old settings", "peer", peer, "instance", instance, "from", s.to.String(), "to", s.from.String())
	m.counts.RolledBack++
	m.cooldown = in.Now.Add(cooldownTime)
	m.cooldownWhy = WaitRolledBack.Text(in.Now.UTC().Format(time.RFC3339), peer, s.from, instance)
	from := s.from
	m.running, m.migration = &from, &migration{from: s.to, to: s.from, began: in.Now, all: true, migrated: map[string]bool{}}
	m.agreement = agreement{}
}

// nameOf returns the name of the peer with an address, else the address.
func (in *Input) nameOf(a netip.Addr) string {
	for _, p := range in.Peers {
		if p.Has(a) {
			return p.Name
		}
	}
	return a.String()
}

// unready returns why this node is not ready to migrate; empty if it is.
func (m *Machine) unready(in *Input) string {
	switch {
	case in.Unready != "":
		return in.Unready
	case m.cooldown.After(in.Now):
		return m.cooldownWhy + "; retrying in " + m.cooldown.Sub(in.Now).Round(time.Minute).String()
	}
	return in.Refused
}

func without(list []Node, names []string) []Node {
	return slices.DeleteFunc(slices.Clone(list), func(n Node) bool { return slices.Contains(names, n.Name) })
}

// consider decides whether to migrate now, and announces the state of this node.
func (m *Machine) consider(in *Input, out *Output) {
	t := &in.Target
	v := view{
		now: in.Now, up: in.Up, self: in.Self, running: *m.running, target: t.Settings, planned: t.Planned,
		fresh: !in.Stale && in.Listed, openShift: in.OpenShift,
		nodes: without(in.Nodes, t.Without),
	}
	if m.Pending(in) {
		if !m.cooldown.After(in.Now) {
			m.migration = nil // the last migration no longer counts
		}
		v.unready = m.unready(in)
	}
	got := m.agreement.evaluate(v)
	if t.Problem != nil {
		got.settled, got.waits = false, v.unready
		got.announcement = Announcement{Running: v.running.String(), Why: v.unready}
	}
	out.Announce = &got.announcement
	if got.settled {
		m.status, m.instants, m.ignored = nil, nil, false
		m.logWait("", out)
		return
	}
	m.remember(&v, got)
	m.status = &state.Migration{Target: t.Settings, Ready: v.unready == "", WaitsFor: got.waits, At: got.at, Agreed: got.agreed}
	m.logWait(got.waits, out)
	if !got.late || v.unready != "" {
		m.lateSince = time.Time{}
	} else if m.lateSince.IsZero() {
		m.lateSince = in.Now
	}
	m.beginOrWait(in, &v, got, out)
}

// beginOrWait begins a migration when it is time, or sets the next evaluation.
func (m *Machine) beginOrWait(in *Input, v *view, got verdict, out *Output) {
	begin := func(why string, all bool) {
		out.log(slog.LevelInfo, "migrating to other VRRP settings", "from", v.running.String(), "to", v.target.String(), "because", why)
		m.migration = &migration{from: v.running, to: v.target, began: in.Now, all: all, migrated: map[string]bool{}}
		m.agreement, m.instants = agreement{}, nil
		m.counts.Migrated++
		m.status.Migrating = true
	}
	adverts := in.Adverts.matching(m.listen(in, v.running))
	e := evidence{advert: in.Now.Sub(adverts.any(newSettings)) < maxAdvertAge, continues: adverts.continues, announced: v.migrated() > 0}
	switch {
	case v.unready != "":
	case got.late && in.Now.Sub(m.lateSince) >= lateAnnouncementTime:
		begin("most other nodes have migrated", true)
	case m.instants.follow(in.Now, e):
		begin("another node has migrated", false)
	case got.agreed && got.left <= 0 && got.left > -lateTime:
		begin("the agreed instant is reached", false)
	case got.agreed:
		out.Again = max(got.left, time.Millisecond)
	case !got.at.IsZero() || e.advert:
		out.Again = m.instants.next(in.Now, time.Second)
	}
	if e.advert && !m.ignored && m.instants != nil && !m.status.Migrating {
		m.ignored = true
		out.log(slog.LevelWarn, "advertisements with the new VRRP settings ignored: no node is known to have migrated", "continues", e.continues)
	}
}

// logWait logs what the migration waits for when that changes.
func (m *Machine) logWait(what string, out *Output) {
	if what != m.waits {
		m.waits = what
		if what != "" {
			out.log(slog.LevelInfo, "migration to other VRRP settings pending", "reason", what)
		}
	}
}
