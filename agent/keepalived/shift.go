package keepalived

import (
	"slices"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// shift is a move from some VRRP settings to others, instance by instance. Who
// goes first is such that the VIP is always held: keepalived keeps its state over a
// reload when an instance changes its version or interval, and begins anew, without
// the VIP, when the mode changes.
type shift struct {
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
	pair // of an instance of it
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
		name := p.name
		if g := group[p.name]; g != "" {
			name = g
		}
		vip := p.new.VIP.Addr().String()
		if i := slices.IndexFunc(out, func(u unit) bool { return u.name == name }); i >= 0 {
			out[i].vips = append(out[i].vips, vip)
		} else {
			out = append(out, unit{name: name, pair: p, vips: []string{vip}})
		}
	}
	return out
}

func pairsOf(old, fresh *keepalived.Conf) (out []pair) {
	for _, o := range old.Instances {
		for _, n := range fresh.Instances {
			if o.Name == n.Name {
				out = append(out, pair{o.Name, o, n})
			}
		}
	}
	return out
}

// downTime is how long a backup waits for an advert at most before it takes over.
func downTime(i *keepalived.Instance) time.Duration { return vrrp.LongestDownInterval(i.Interval()) }

// anew says that keepalived begins anew with an instance.
func (p *pair) anew() bool { return (len(p.old.Peers) == 0) != (len(p.new.Peers) == 0) }

// waits says how long after the beginning an instance moves, and whether it does so
// as soon as somebody is heard who has moved.
func (p *pair) waits(holds bool) (for_ time.Duration, orHeard bool) {
	old, fresh := downTime(&p.old), downTime(&p.new)
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
func (p *pair) settled() time.Duration {
	a, _ := p.waits(true)
	b, _ := p.waits(false)
	return max(a, b) + settleTime
}

// step notes what moves by now, and says when to look again; 0 for never.
func (s *shift) step(now time.Time, list []unit, holds func(vip string) bool, heard func(instance string) time.Time) (again time.Duration) {
	for i := range list {
		u := &list[i]
		if s.moved[u.name] {
			continue
		}
		wait, orHeard := u.waits(slices.ContainsFunc(u.vips, holds))
		left := wait - now.Sub(s.began)
		if s.all || left <= 0 || orHeard && heard(u.pair.name).After(s.began.Add(-time.Second)) {
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
func (s *shift) mix(old, fresh *keepalived.Conf, list []unit) *keepalived.Conf {
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
func (s *shift) lagging(list []unit, heard func(instance string) time.Time) string {
	for i := range list {
		u := &list[i]
		if heard(u.pair.name).After(s.began.Add(u.settled())) {
			return u.pair.name
		}
	}
	return ""
}
