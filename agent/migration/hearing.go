package migration

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/vipgen/vipgen/internal/vrrp/listener"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// generation says which VRRP settings an advert has: those of before a migration, or the
// new ones.
type generation int

const (
	neither generation = iota
	oldSettings
	newSettings
)

// Pair is a VRRP instance with both settings.
type Pair struct {
	Name     string
	Old, New keepalived.Instance
}

// pairsOf pairs what two configurations of the same node have.
func pairsOf(old, fresh *keepalived.Conf) (out []Pair) {
	for _, o := range old.Instances {
		for _, n := range fresh.Instances {
			if o.Name == n.Name {
				out = append(out, Pair{o.Name, o, n})
			}
		}
	}
	return out
}

// differ is what adverts of pairs are told apart by.
func differ(pairs []Pair) (out string) {
	for _, p := range pairs {
		out += fmt.Sprintln(p.Name, p.Old.Version, len(p.Old.Peers) == 0, p.Old.AdvertInterval, p.New.Version, len(p.New.Peers) == 0, p.New.AdvertInterval)
	}
	return out
}

// generationOf says which settings an advert has. Those that VRRP itself does not tell
// apart, as VRRPv3 of classic and fast in IPv6, differ in how often adverts come. One from
// beyond the link has no settings with the full TTL: no move follows it.
func (p *Pair) generationOf(a listener.Received) generation {
	is := func(i *keepalived.Instance) bool {
		multicast := a.Destination.IsMulticast()
		return a.Version == i.Version && multicast == (len(i.Peers) == 0) && (a.TTL == 255 || !multicast && !i.FullTTL)
	}
	old, fresh := is(&p.Old), is(&p.New)
	switch {
	case old && fresh:
		fromOld, fromNew := (a.Interval - p.Old.Interval()).Abs(), (a.Interval - p.New.Interval()).Abs()
		switch {
		case fromOld < fromNew:
			return oldSettings
		case fromNew < fromOld:
			return newSettings
		}
	case old:
		return oldSettings
	case fresh:
		return newSettings
	}
	return neither
}

// Heard is what a Hearing has taken in. The zero value is for nothing.
type Heard struct {
	differ string // of the pairs that were listened for
	last   map[string]map[generation]time.Time
	goesOn bool // a node goes on sending adverts with the new settings
}

// of is what was heard of those pairs: nothing where others were listened for.
func (h Heard) of(pairs []Pair) Heard {
	if h.differ != differ(pairs) {
		return Heard{}
	}
	return h
}

// any gives when an advert of a generation was heard last, of whichever instance.
func (h Heard) any(of generation) (last time.Time) {
	for _, times := range h.last {
		if t := times[of]; t.After(last) {
			last = t
		}
	}
	return last
}

// Hearing takes in the adverts of peers, whichever settings keepalived has itself. That
// is the one thing that nodes which differ in the list of nodes, in their clocks or
// in the API server that they read have in common. The zero value listens for nothing.
type Hearing struct {
	pairs     []Pair
	differ    string
	from      []netip.Addr // peers
	last      map[string]map[generation]time.Time
	sequences map[netip.Addr]sequence // of adverts with the new settings, by sender
}

// Follow has it take in the adverts of those instances from those peers. It forgets what
// it has heard if these are other instances, or have other settings.
func (h *Hearing) Follow(pairs []Pair, from []netip.Addr) {
	if d := differ(pairs); d != h.differ {
		h.last, h.sequences, h.differ = nil, nil, d
	}
	h.pairs, h.from = pairs, from
}

// Pairs are the instances that it follows.
func (h *Hearing) Pairs() []Pair { return h.pairs }

// Heard is what was heard up to now.
func (h *Hearing) Heard(now time.Time) Heard {
	out := Heard{differ: h.differ, last: map[string]map[generation]time.Time{}}
	for name, times := range h.last {
		out.last[name] = maps.Clone(times)
	}
	for _, s := range h.sequences {
		out.goesOn = out.goesOn || s.goesOn() && now.Sub(s.last) < heardTime
	}
	return out
}

// quietTime is for how long no advert came before one that is news: longer than the
// interval of any profile, so that a holder that goes on is none.
const quietTime = 1500 * time.Millisecond

// Note takes in an advert that came on a link. The last one of a holder that gives a VIP
// away counts for nothing. It says whether that is news: the first advert of a generation
// of an instance, or that those of a node that has moved go on.
func (h *Hearing) Note(link string, a listener.Received, now time.Time) (news bool) {
	if a.Priority == 0 || !slices.Contains(h.from, a.Source) && !(a.Source.Is6() && a.Source.IsLinkLocalUnicast() && a.Destination.IsMulticast()) {
		return false
	}
	for i := range h.pairs {
		p := &h.pairs[i]
		if link != p.New.Interface || int(a.RouterID) != p.New.RouterID || len(a.VIPs) == 0 || a.VIPs[0] != p.New.VIP.Addr() {
			continue
		}
		is := p.generationOf(a)
		if is == neither {
			continue
		}
		if h.last == nil {
			h.last = map[string]map[generation]time.Time{}
		}
		if h.last[p.Name] == nil {
			h.last[p.Name] = map[generation]time.Time{}
		}
		news = news || now.Sub(h.last[p.Name][is]) > quietTime
		if is == newSettings {
			news = h.count(a.Source, now, p.New.Interval()) || news
		}
		h.last[p.Name][is] = now
	}
	return news
}

// sequence are adverts with the new settings that one node sends without a break.
type sequence struct {
	first, last time.Time
	interval    time.Duration
	count       int
}

// goesOn says that they are no few packets, which anybody can have sent.
func (s sequence) goesOn() bool { return s.count >= 3 && s.last.Sub(s.first) >= 2*s.interval }

// maxSequences bounds the senders that are told apart: link-local ones can be anybody's.
const maxSequences = 256

// count takes in an advert with the new settings, and says whether the sender's go on
// from now on.
func (h *Hearing) count(from netip.Addr, now time.Time, interval time.Duration) bool {
	if h.sequences == nil || len(h.sequences) >= maxSequences {
		h.sequences = map[netip.Addr]sequence{}
	}
	before := h.sequences[from]
	after := before
	if now.Sub(before.last) > max(heardTime, 3*interval) {
		after = sequence{first: now}
	}
	after.last, after.interval, after.count = now, interval, after.count+1
	h.sequences[from] = after
	return after.goesOn() && !before.goesOn()
}
