package migration

import (
	"slices"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// migration is a change between VRRP settings, instance by instance, in an order that keeps the
// VIP held: keepalived keeps its state over a reload if version or interval of an
// instance change, and restarts it without the VIP if the mode changes.
type migration struct {
	from, to v1alpha1.VRRPSettings
	began    time.Time
	// all migrates all instances at once: to catch up with the others, or to roll back.
	all bool
	// migrated has the instances and sync groups with the new settings.
	migrated map[string]bool
	done     time.Time // when all of them did; zero before
}

const (
	// headStart bounds how long the holder keeps its settings while backups switch to a
	// longer timer.
	headStart = time.Second
	// spare is more than the duration of a reload on a busy node.
	spare = 500 * time.Millisecond
	// settleTime is how long after the end of a migration an advert with the old settings
	// shows that a node did not migrate. On a busy node the reload takes more than two seconds,
	// and a needless roll-back disturbs clients twice and delays the migration by cooldownTime.
	settleTime = 4 * time.Second
	// guardTime is how long after a migration such an advert causes a roll-back. Later, the
	// sender is a lagging peer, and has to migrate.
	guardTime = time.Minute
	// reviewTime is the interval of checks for such adverts.
	reviewTime = time.Second
	// cooldownTime is how long after a roll-back a node does not try again.
	cooldownTime = 10 * time.Minute
)

// unit is an instance, or a sync group, which migrates at once.
type unit struct {
	name string
	Pair // of one of its instances
	vips []string
}

// units pairs the instances and sync groups of two configurations of a node.
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

// DownTime bounds how long a backup waits for an advert before it takes over.
func DownTime(i *keepalived.Instance) time.Duration { return vrrp.LongestDownInterval(i.Interval()) }

// anew reports whether keepalived restarts the instance.
func (p *Pair) anew() bool { return (len(p.Old.Peers) == 0) != (len(p.New.Peers) == 0) }

// waits returns how long after the beginning an instance migrates, and whether it migrates
// sooner when adverts of a migrated node arrive.
func (p *Pair) waits(holds bool) (delay time.Duration, orReceived bool) {
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

// settled returns how long after the beginning no node sends adverts with the old
// settings.
func (p *Pair) settled() time.Duration {
	a, _ := p.waits(true)
	b, _ := p.waits(false)
	return max(a, b) + settleTime
}

// step records the units that migrate by now, and returns the delay of the next step; 0 for
// none.
func (s *migration) step(now time.Time, list []unit, holds func(vip string) bool, received func(instance string) time.Time) (again time.Duration) {
	for i := range list {
		u := &list[i]
		if s.migrated[u.name] {
			continue
		}
		wait, orReceived := u.waits(slices.ContainsFunc(u.vips, holds))
		left := wait - now.Sub(s.began)
		if s.all || left <= 0 || orReceived && received(u.Name).After(s.began.Add(-time.Second)) {
			s.migrated[u.name] = true
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

// mix returns the configuration in which only some units have migrated.
func (s *migration) mix(old, fresh *keepalived.Conf) *keepalived.Conf {
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
		if !s.migrated[name] {
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

// lagging returns an instance with adverts that still have the old settings, because a
// peer has not migrated; empty for none.
func (s *migration) lagging(list []unit, received func(instance string) time.Time) string {
	for i := range list {
		u := &list[i]
		if received(u.Name).After(s.began.Add(u.settled())) {
			return u.Name
		}
	}
	return ""
}
