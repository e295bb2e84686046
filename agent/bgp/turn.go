package bgp

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/vipgen/vipgen/agent/gate"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/netdump"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// holdFor is how long a withdrawn VIP stays local: until the routers know, a node that
// forwards packets would send them back, and one that has the VIP answers with a reset.
const holdFor = 2 * time.Second

// turn brings announcements and routes in step with the facts.
func (j *Job) turn() {
	j.watchdog.Reset()
	if j.outdated.Swap(false) || j.facts == nil {
		f, err := j.Source.Facts()
		j.deciding.Error(j.Log, err, "cannot decide on announcements: the current ones stay", "announcements decided again")
		if err != nil {
			j.outdated.Store(true)
			return
		}
		j.facts = f
		_ = j.gate.Follow(f.Cluster.Spec.Announced(), f.Node.Role, f.Node.Labels) // logged
	}
	f := j.facts
	if j.Source.Nodes != nil {
		gate.SetRouters(j.gate.Board, f.Cluster.Spec.Announced(), f.Node, j.Source.Nodes)
	}
	j.bootstrap.Poll(time.Now(), j.gate.Board.Get)
	s := &state.BGP{Facts: j.gate.Board.Facts(), ClusterProblem: j.Source.Problem()}
	if f.Cluster.Spec.Routed() {
		s.Mode = f.Cluster.Spec.RoutedBy()
		s.VIPs = j.decide()
	}
	j.apply(s)
	j.publish(s)
}

// decide returns the VIPs that the node may announce, and whether it does.
func (j *Job) decide() (out []state.AnnouncedVIP) {
	spec, node := j.facts.Cluster.Spec.Announced(), j.facts.Node
	over, _ := j.bootstrap.State()
	for i := range spec.Groups {
		g := &spec.Groups[i]
		if !spec.Hosts(g, node.Role, node.Labels) {
			continue
		}
		p := vrrp.Prefer(g, node.Role, j.gate.Board.Health(g))
		why := vrrp.PreferenceWords(g, node.Role, p)
		switch {
		case node.Unregistered:
			p, why = vrrp.Withdrawn, vrrp.LeftOutUnregistered.Text()
		case over:
			p, why = vrrp.Withdrawn, vrrp.LeftOutBootstrapGone.Text()
		case j.leaving && p.Announces():
			p = vrrp.Leaving
			why = vrrp.PreferenceWords(g, node.Role, p)
		}
		preference := int(p)
		switch {
		case !p.Announces():
			preference = 0
		case spec.BGP.OnePath():
			preference = int(p)*places + place(spec, g, node)
		}
		for _, vip := range g.VIPs {
			out = append(out, state.AnnouncedVIP{Group: g.Name, VIP: vip, Announced: p.Announces(), Preference: preference, Why: why})
		}
	}
	return out
}

// places is the number of preferences that nodes of one level of health can differ by: more nodes
// share the last one. It bounds the length of AS paths, by which routers beyond the next one
// compare nodes.
const places = 10

// place returns how many nodes that can have the VIPs of a group precede a node, by name.
func place(spec *v1alpha1.ClusterConfigSpec, g *v1alpha1.Group, node *v1alpha1.Node) (n int) {
	if node.Role == v1alpha1.RoleBootstrap {
		return 0
	}
	for i := range node.Peers {
		p := &node.Peers[i]
		if p.Role != v1alpha1.RoleBootstrap && p.Name < node.Name && spec.Hosts(g, p.Role, p.Labels) {
			n++
		}
	}
	return min(n, places-1)
}

// apply makes the announced VIPs local before routers learn of them, and withdraws the
// others before they stop being local.
func (j *Job) apply(s *state.BGP) {
	wanted := map[netip.Addr]Route{}
	for _, v := range s.VIPs {
		if v.Announced {
			wanted[v.VIP] = Route{VIP: v.VIP, Preference: v.Preference, First: j.facts.Node.Role == v1alpha1.RoleBootstrap}
		}
	}
	now := time.Now()
	for vip := range j.announced {
		if _, ok := wanted[vip]; !ok {
			j.held[vip] = now.Add(holdFor)
		}
	}
	local := slices.Collect(maps.Keys(wanted))
	for vip, until := range j.held {
		if _, ok := wanted[vip]; ok || now.After(until) {
			delete(j.held, vip)
		} else {
			local = append(local, vip)
		}
	}
	err := setLocal(local)
	j.routing.Error(j.Log, err, "cannot set the routes of VIPs", "routes of VIPs set again")
	routes := slices.SortedFunc(maps.Values(wanted), func(a, b Route) int { return a.VIP.Compare(b.VIP) })
	why := j.announce(s, routes)
	j.announcing.Error(j.Log, why, "cannot announce VIPs", "VIPs announced again")
	for i := range s.VIPs {
		s.VIPs[i].Local = err == nil && slices.Contains(local, s.VIPs[i].VIP)
	}
	for _, e := range []error{err, why} {
		if e != nil && s.Problem == "" {
			s.Problem = e.Error()
		}
	}
	j.announced = wanted
}

// announce hands the routes to the routers, or to another speaker's table.
func (j *Job) announce(s *state.BGP, routes []Route) error {
	if s.Mode != v1alpha1.AnnounceBGP {
		j.stopSpeaker()
		j.unnumbered.Keep(nil)
		return setTable(routes)
	}
	if err := setTable(nil); err != nil {
		return err
	}
	err := j.runSpeaker(s)
	if j.speaker == nil {
		return err
	}
	if failed := j.speaker.Announce(routes); failed != nil {
		return failed
	}
	sessions := j.speaker.Sessions()
	err = errors.Join(err, j.laterSpeaker(sessions, netdump.Established))
	s.Peers = append(s.Peers, sessions...)
	return err
}

// holdExisting holds VIPs that an earlier process of the job left local, until the first
// turns have decided on them.
func (j *Job) holdExisting() error {
	vips, err := local()
	for _, vip := range vips {
		j.held[vip] = time.Now().Add(holdFor)
	}
	return err
}

// publish publishes the state of the job, and logs changes.
func (j *Job) publish(s *state.BGP) {
	before := j.last.Swap(s)
	if before == nil {
		before = &state.BGP{}
	}
	for _, e := range changes(before, s) {
		j.record.Record(e)
	}
	for _, v := range s.VIPs {
		was := slices.IndexFunc(before.VIPs, func(b state.AnnouncedVIP) bool { return b.VIP == v.VIP })
		switch {
		case v.Announced && (was < 0 || !before.VIPs[was].Announced):
			j.Log.Info("VIP announced", "vip", v.VIP, "preference", v.Preference, "why", v.Why)
		case !v.Announced && was >= 0 && before.VIPs[was].Announced:
			j.Log.Warn("VIP withdrawn", "vip", v.VIP, "why", v.Why)
		case v.Announced && was >= 0 && before.VIPs[was].Preference != v.Preference:
			j.Log.Info("VIP announced with another preference", "vip", v.VIP, "preference", v.Preference, "why", v.Why)
		}
	}
	for _, p := range s.Peers {
		was := slices.IndexFunc(before.Peers, func(b state.BGPPeer) bool { return b.Name() == p.Name() })
		established := was >= 0 && before.Peers[was].Established()
		switch {
		case p.Established() && !established:
			j.Log.Info("BGP session established", "peer", p.Name(), "asn", p.ASN)
		case !p.Established() && established:
			j.Log.Warn("BGP session lost", "peer", p.Name(), "asn", p.ASN, "state", p.State, "error", p.Problem)
		}
		if p.BFD == "up" && (was < 0 || before.Peers[was].BFD != "up") {
			j.Log.Info("BFD with the router up", "peer", p.Name())
		}
	}
	j.publishing.Error(j.Log, j.State.Publish(*s), "cannot publish the state of announcements", "state published again")
}
