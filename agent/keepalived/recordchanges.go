package keepalived

import (
	"cmp"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/agent/job"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/events"
)

// changes returns the events between two states.
func changes(before, now *state.Keepalived) (out []events.Event) {
	if now.VRRP != nil && (before.VRRP == nil || *before.VRRP != *now.VRRP) {
		out = append(out, events.Event{Kind: events.Settings, Settings: now.VRRP})
	}
	if e, changed := migrationChange(before.Migration, now.Migration); changed {
		out = append(out, e)
	}
	if !slices.Equal(before.LeftOut, now.LeftOut) {
		out = append(out, events.Event{Kind: events.LeftOut, Reasons: now.LeftOut})
	}
	for i := range now.Instances {
		out = append(out, instanceChanges(instanceOf(before, now.Instances[i].Name), &now.Instances[i])...)
	}
	if before.Wanted && !now.Wanted {
		out = append(out, events.Event{Kind: events.KeepalivedStopped})
	}
	if now.Problem != before.Problem || now.ClusterProblem != before.ClusterProblem {
		out = append(out, events.Event{Kind: events.Refused, Why: job.FirstLine(strings.TrimSpace(now.Problem + " " + now.ClusterProblem))})
	}
	if now.Guard.InPlace != before.Guard.InPlace && now.Wanted {
		out = append(out, events.Event{Kind: events.Guard, OK: now.Guard.InPlace})
	}
	if n, was := droppedPackets(&now.Guard), droppedPackets(&before.Guard); n > was {
		out = append(out, events.Event{Kind: events.Strangers, Count: n - was})
	}
	return out
}

// instanceChanges returns the events of a VIP; before is nil for a new one.
func instanceChanges(before, now *state.Instance) (out []events.Event) {
	if before == nil {
		before = &state.Instance{Priority: -1}
	}
	about := events.Event{Instance: now.Name, VIP: now.VIP}
	if before.Interface != now.Interface || before.Source != now.Source || !slices.Equal(before.Peers, now.Peers) {
		e := about
		e.Kind, e.Interface, e.Source, e.Peers = events.Instance, now.Interface, now.Source, now.Peers
		out = append(out, e)
	}
	if before.Priority != now.Priority || before.Fault != now.Fault {
		e := about
		e.Kind, e.Priority, e.Own, e.OK = events.Priority, now.Priority, now.Base, !now.Fault
		for _, t := range now.Terms {
			e.Terms = append(e.Terms, events.Term{Name: t.Name, Points: t.Points, On: t.On})
		}
		out = append(out, e)
	}
	if h := now.Holder; h != nil && (before.Holder == nil || before.Holder.Address != h.Address) {
		e := about
		e.Kind, e.Peer, e.Name, e.Priority = events.Holder, h.Address, h.Node, h.Priority
		out = append(out, e)
	}
	return out
}

func instanceOf(s *state.Keepalived, name string) *state.Instance {
	for i := range s.Instances {
		if s.Instances[i].Name == name {
			return &s.Instances[i]
		}
	}
	return nil
}

// droppedPackets returns the number of dropped packets since the agent started.
func droppedPackets(g *state.Guard) (n uint64) {
	for _, d := range g.Dropped {
		n += d.Packets
	}
	return n
}

// migrationProgress is the progress of a migration; the zero value where there is none.
type migrationProgress struct {
	state  string
	target v1alpha1.VRRPSettings
	at     int64 // in nanoseconds since 1970
}

func progressOf(m *state.Migration) migrationProgress {
	switch {
	case m == nil:
		return migrationProgress{}
	case m.Migrating:
		return migrationProgress{events.Migrating, m.Target, m.At.UnixNano()}
	case m.Agreed:
		return migrationProgress{events.Agreed, m.Target, m.At.UnixNano()}
	}
	return migrationProgress{state: events.Pending, target: m.Target}
}

// migrationChange returns the event of a migration whose progress changed.
func migrationChange(before, now *state.Migration) (e events.Event, changed bool) {
	was, is := progressOf(before), progressOf(now)
	if was == is {
		return e, false
	}
	e = events.Event{Kind: events.Migration, State: cmp.Or(is.state, events.Over), Settings: &is.target}
	switch {
	case now == nil:
		e.Settings = &was.target
	case is.at != 0:
		e.At = now.At.UTC()
	}
	return e, true
}
