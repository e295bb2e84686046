package bgp

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/agent/job"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/events"
)

// checked records a fact of a health check for `vipgen doctor`.
func (j *Job) checked(f state.Fact) {
	j.record.Record(events.Event{Kind: events.Check, Name: f.Name, OK: f.OK, Why: job.FirstLine(f.Why)})
}

// changes returns the events between two published states. VIPs and routers that are no longer
// there end as withdrawn and without a session.
func changes(before, now *state.BGP) (out []events.Event) {
	vips, routers := map[netip.Addr]state.AnnouncedVIP{}, map[string]state.BGPPeer{}
	for _, v := range before.VIPs {
		vips[v.VIP] = v
	}
	for _, p := range before.Peers {
		routers[p.Name()] = p
	}
	mode := string(now.Mode)
	for _, v := range now.VIPs {
		if was, known := vips[v.VIP]; !known || was.Announced != v.Announced || was.Preference != v.Preference {
			out = append(out, events.Event{Kind: events.Announced, Instance: v.VIP.String(), VIP: v.VIP, OK: v.Announced, Priority: v.Preference, State: mode, Why: v.Why})
		}
		delete(vips, v.VIP)
	}
	for vip := range vips {
		out = append(out, events.Event{Kind: events.Announced, Instance: vip.String(), VIP: vip, State: mode})
	}
	for _, p := range now.Peers {
		if was, known := routers[p.Name()]; !known || was.Carries() != p.Carries() || p.Problem != "" && was.Problem != p.Problem {
			out = append(out, events.Event{Kind: events.Session, Name: p.Name(), Peer: p.Address, OK: p.Carries(), State: p.State, Why: job.FirstLine(p.Problem)})
		}
		delete(routers, p.Name())
	}
	for name, p := range routers {
		out = append(out, events.Event{Kind: events.Session, Name: name, Peer: p.Address, State: "removed"})
	}
	if before.Problem != now.Problem {
		out = append(out, events.Event{Kind: events.Problem, Why: job.FirstLine(now.Problem)})
	}
	slices.SortStableFunc(out, func(a, b events.Event) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Instance, b.Instance))
	})
	return out
}
