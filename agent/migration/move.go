package migration

import (
	"slices"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// move is one from some VRRP settings to others, instance by instance. Who
// goes first is such that the VIP is always held: keepalived keeps its state over a
// reload when an instance changes its version or interval, and begins anew, without
// the VIP, when the mode changes.
type move struct {
	from, to v1alpha1.VRRPSettings
	began    time.Time
	// all at once: to catch up with the others, or to go back with them.
	all bool
	// moved has the instances and sync groups that have the new settings.
	moved map[string]bool
	done  time.Time // when all of them did; zero before
}

const (
	// headStart is for how long, at most, the holder goes on as before while the
	// others wait for it with a longer timer.
	headStart = time.Second
	// spare is what a reload takes, and more, on a busy node.
	spare = 500 * time.Millisecond
	// settleTime is how long after a move should be over an advert with the old settings
	// means that somebody did not move.
	settleTime = 2 * time.Second
	// guardTime is for how long after a move such an advert has this node go back.
	// Later, the sender is a lagging peer, and is to move.
	guardTime = time.Minute
	// reviewTime is how often this node looks for such adverts meanwhile.
	reviewTime = time.Second
	// cooldownTime is how long a node that went back is not ready to try again.
	cooldownTime = 10 * time.Minute
)

// unit is what moves at once: an instance, or a sync group.
type unit struct {
	name string
	Pair // of an instance of it
	vips []string
}

// units pairs what two configurations of the same node have.
func units(old, fresh *keepalived.Conf) (out []unit) {
	group := map[string]string{}
	for _, g := range fresh.SyncGroups {
		for _, m := range g.Members {
			group[m] = g.Name
		}
	}
	for _, p := range pairsOf(old, fresh) {
		name := p.Name
		if g := group[p.Name]; g != "" {
			name = g
		}
		vip := p.New.VIP.Addr().String()
		if i := slices.IndexFunc(out, func(u unit) bool { return u.name == name }); i >= 0 {
			out[i].vips = append(out[i].vips, vip)
		} else {
			out = append(out, unit{name: name, Pair: p, vips: []string{vip}})
		}
	}
	return out
}

// DownTime is how long a backup waits for an advert at most before it takes over.
func DownTime(i *keepalived.Instance) time.Duration { return vrrp.LongestDownInterval(i.Interval()) }

// anew says that keepalived begins anew with an instance.
func (p *Pair) anew() bool { return (len(p.Old.Peers) == 0) != (len(p.New.Peers) == 0) }

// waits says how long after the beginning an instance moves, and whether it does so
// as soon as somebody is heard who has moved.
func (p *Pair) waits(holds bool) (delay time.Duration, orHeard bool) {
	old, fresh := DownTime(&p.Old), DownTime(&p.New)
	switch {
	case p.anew() && holds:
		return fresh + spare, true
	case p.anew(), fresh > old && !holds, fresh <= old && holds:
		return 0, false
	case holds:
		return min(headStart, fresh/4), false
	}
	return old / 4, true
}

// settled is how long after the beginning nobody is to send adverts with the old
// settings any more.
func (p *Pair) settled() time.Duration {
	a, _ := p.waits(true)
	b, _ := p.waits(false)
	return max(a, b) + settleTime
}

// step notes what moves by now, and says when to look again; 0 for never.
func (s *move) step(now time.Time, list []unit, holds func(vip string) bool, heard func(instance string) time.Time) (again time.Duration) {
	for i := range list {
		u := &list[i]
		if s.moved[u.name] {
			continue
		}
		wait, orHeard := u.waits(slices.ContainsFunc(u.vips, holds))
		left := wait - now.Sub(s.began)
		if s.all || left <= 0 || orHeard && heard(u.Name).After(s.began.Add(-time.Second)) {
			s.moved[u.name] = true
			continue
		}
		if again == 0 || left < again {
			again = left
		}
	}
	if again == 0 && s.done.IsZero() {
		s.done = now
	}
	return again
}

// mix is the configuration in which some units have moved.
func (s *move) mix(old, fresh *keepalived.Conf) *keepalived.Conf {
	if !s.done.IsZero() {
		return fresh
	}
	out := *old
	out.Instances = slices.Clone(old.Instances)
	for i := range out.Instances {
		name := out.Instances[i].Name
		for _, g := range fresh.SyncGroups {
			if slices.Contains(g.Members, name) {
				name = g.Name
			}
		}
		if !s.moved[name] {
			continue
		}
		for _, n := range fresh.Instances {
			if n.Name == out.Instances[i].Name {
				out.Instances[i] = n
			}
		}
	}
	return &out
}

// lagging names an instance whose adverts still come with the old settings, so that a
// peer has not moved; nothing if there is none.
func (s *move) lagging(list []unit, heard func(instance string) time.Time) string {
	for i := range list {
		u := &list[i]
		if heard(u.Name).After(s.began.Add(u.settled())) {
			return u.Name
		}
	}
	return ""
}
