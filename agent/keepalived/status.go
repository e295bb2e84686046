package keepalived

import (
	"log/slog"
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/job"
	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/liveness"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// heldBy sets the holder of an instance that another node holds, named if it is a peer.
func heldBy(i *state.Instance, holders map[string]state.Holder, peers []v1alpha1.Peer) {
	h, known := holders[i.Name]
	if !known || i.Holds {
		return
	}
	for _, p := range peers {
		if p.Has(h.Address) {
			h.Node = p.Name
		}
	}
	i.Holder = &h
}

// holds reports whether the node holds a VIP by a published state, which may be nil.
func holds(s *state.Keepalived, vip netip.Addr) bool {
	return s != nil && slices.ContainsFunc(s.Instances, func(i state.Instance) bool { return i.VIP == vip && i.Holds })
}

func instanceStates(conf *keepalived.Conf, values []health.TrackValue, held []netip.Addr) []state.Instance {
	on := map[string]bool{}
	for _, v := range values {
		on[v.Name] = v.Value == 1
	}
	var out []state.Instance
	for _, i := range conf.Instances {
		s := state.Instance{
			Name: i.Name, VIP: i.VIP.Addr(), Interface: i.Interface, Source: i.Source, Peers: i.Peers,
			Holds: slices.Contains(held, i.VIP.Addr()), Priority: i.Priority, Base: i.Priority,
		}
		for _, t := range conf.TermsOf(i) {
			s.Terms = append(s.Terms, state.Term{Name: t.Name, Points: t.Points, On: on[t.Name], Meaning: t.Meaning})
			switch {
			case !on[t.Name]:
			case t.Points == 0:
				s.Fault = true
			default:
				s.Priority += t.Points
			}
		}
		out = append(out, s)
	}
	return out
}

type publisher struct {
	last     atomic.Pointer[state.Keepalived] // nil before the first publication
	watchdog liveness.Watchdog
	failing  logging.Transitions
}

// publish publishes a state, and logs acquired and released VIPs.
func (p *publisher) publish(dir *state.Dir, s *state.Keepalived, log *slog.Logger) {
	before := p.last.Swap(s)
	for _, i := range s.Instances {
		if i.Holds != holds(before, i.VIP) {
			log.Info(job.Either(i.Holds, "VIP acquired", "VIP released"), "vip", i.VIP, "priority", i.Priority)
		}
	}
	p.failing.Error(log, dir.Publish(*s), "cannot publish the state of keepalived", "state published again")
	p.watchdog.Reset()
}
