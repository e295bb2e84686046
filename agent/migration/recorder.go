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

// generation is the VRRP settings of an advert: those before a migration or the new
// ones.
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

// pairsOf pairs the instances of two configurations of a node.
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

// differ returns a key of the properties that tell the generations of pairs apart.
func differ(pairs []Pair) (out string) {
	for _, p := range pairs {
		out += fmt.Sprintln(p.Name, p.Old.Version, len(p.Old.Peers) == 0, p.Old.AdvertInterval, p.New.Version, len(p.New.Peers) == 0, p.New.AdvertInterval)
	}
	return out
}

// generationOf returns the generation of an advert. Where VRRP itself does not distinguish them
// (VRRPv3 of classic and fast in IPv6) the advertised interval does. An advert from
// beyond the link has no settings with the full TTL: no migration follows it.
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

// receivedAdvert is the last advert of a generation of an instance.
type receivedAdvert struct {
	at   time.Time
	from netip.Addr
}

// Adverts is a copy of the adverts that a Recorder received; none in the zero value.
type Adverts struct {
	differ    string // key of the followed pairs
	last      map[string]map[generation]receivedAdvert
	continues bool // a node keeps sending adverts with the new settings
}

// matching returns the adverts of these pairs; none if others were followed.
func (r Adverts) matching(pairs []Pair) Adverts {
	if r.differ != differ(pairs) {
		return Adverts{}
	}
	return r
}

// any returns the time of the last advert of a generation, of any instance.
func (r Adverts) any(of generation) (last time.Time) {
	for _, adverts := range r.last {
		if t := adverts[of].at; t.After(last) {
			last = t
		}
	}
	return last
}

// Recorder records the adverts of peers, with any VRRP settings: the one observation that
// nodes share even if their lists of nodes, clocks or API servers differ. The zero value
// follows nothing.
type Recorder struct {
	pairs     []Pair
	differ    string
	from      []netip.Addr // peers
	last      map[string]map[generation]receivedAdvert
	sequences map[netip.Addr]sequence // of adverts with the new settings, by sender
}

// Follow records the adverts of these instances from these peers. It forgets recorded
// adverts if instances or settings differ from before.
func (r *Recorder) Follow(pairs []Pair, from []netip.Addr) {
	if d := differ(pairs); d != r.differ {
		r.last, r.sequences, r.differ = nil, nil, d
	}
	r.pairs, r.from = pairs, from
}

// Pairs returns the followed instances.
func (r *Recorder) Pairs() []Pair { return r.pairs }

// Adverts returns the adverts received so far.
func (r *Recorder) Adverts(now time.Time) Adverts {
	out := Adverts{differ: r.differ, last: map[string]map[generation]receivedAdvert{}}
	for name, adverts := range r.last {
		out.last[name] = maps.Clone(adverts)
	}
	for _, s := range r.sequences {
		out.continues = out.continues || s.continues() && now.Sub(s.last) < maxAdvertAge
	}
	return out
}

// quietTime is the gap before an advert that is news: longer than the interval of any
// profile, so that the adverts of an active holder are not.
const quietTime = 1500 * time.Millisecond

// Record records an advert received on a link, except the last one of a holder that
// releases a VIP. It reports news: the first advert of a generation of an instance, or
// adverts of a migrated node that keep coming.
func (r *Recorder) Record(link string, a listener.Received, now time.Time) (news bool) {
	if a.Priority == 0 || !slices.Contains(r.from, a.Source) && !(a.Source.Is6() && a.Source.IsLinkLocalUnicast() && a.Destination.IsMulticast()) {
		return false
	}
	for i := range r.pairs {
		p := &r.pairs[i]
		if link != p.New.Interface || int(a.RouterID) != p.New.RouterID || len(a.VIPs) == 0 || a.VIPs[0] != p.New.VIP.Addr() {
			continue
		}
		is := p.generationOf(a)
		if is == neither {
			continue
		}
		if r.last == nil {
			r.last = map[string]map[generation]receivedAdvert{}
		}
		if r.last[p.Name] == nil {
			r.last[p.Name] = map[generation]receivedAdvert{}
		}
		news = news || now.Sub(r.last[p.Name][is].at) > quietTime
		if is == newSettings {
			news = r.count(a.Source, now, p.New.Interval()) || news
		}
		r.last[p.Name][is] = receivedAdvert{now, a.Source}
	}
	return news
}

// sequence is an uninterrupted series of adverts with the new settings from one node.
type sequence struct {
	first, last time.Time
	interval    time.Duration
	count       int
}

// continues reports whether there are more packets than a few that any host could forge.
func (s sequence) continues() bool { return s.count >= 3 && s.last.Sub(s.first) >= 2*s.interval }

// maxSequences bounds the tracked senders: link-local addresses can be anyone's.
const maxSequences = 256

// count counts an advert with the new settings, and reports whether the sender's continue
// from now on.
func (r *Recorder) count(from netip.Addr, now time.Time, interval time.Duration) bool {
	if r.sequences == nil || len(r.sequences) >= maxSequences {
		r.sequences = map[netip.Addr]sequence{}
	}
	before := r.sequences[from]
	after := before
	if now.Sub(before.last) > max(maxAdvertAge, 3*interval) {
		after = sequence{first: now}
	}
	after.last, after.interval, after.count = now, interval, after.count+1
	r.sequences[from] = after
	return after.continues() && !before.continues()
}
