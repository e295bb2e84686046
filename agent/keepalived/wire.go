package keepalived

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/internal/vrrp/listener"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// generation says which VRRP settings an advert has: those of before a migration, or the new ones.
type generation int

const (
	neither generation = iota
	oldSettings
	newSettings
)

// pair is a VRRP instance with both settings.
type pair struct {
	name     string
	old, new keepalived.Instance
}

// wire hears the adverts of peers, whichever settings keepalived has itself. That
// is the one thing that nodes which differ in the list of nodes, in their clocks or
// in the API server that they read have in common.
type wire struct {
	log *slog.Logger
	// changed is told of the first advert of a generation of an instance, and when those of a
	// node that has moved go on.
	changed func()

	failing logging.Transitions

	mu        sync.Mutex
	pairs     []pair
	differ    string       // what the pairs tell apart
	from      []netip.Addr // peers
	heard     map[string]map[generation]time.Time
	sequences map[netip.Addr]sequence // of adverts with the new settings, by sender
	sockets   map[socketKey]context.CancelFunc
}

// socketKey is where it listens.
type socketKey struct {
	link string
	ipv6 bool
}

// follow makes the wire listen to adverts of those instances from those peers, and
// forget the others; none ends it.
func (w *wire) follow(pairs []pair, from []netip.Addr) {
	w.mu.Lock()
	defer w.mu.Unlock()
	differ := ""
	for _, p := range pairs {
		differ += fmt.Sprintln(p.name, p.old.Version, len(p.old.Peers) == 0, p.old.AdvertInterval, p.new.Version, len(p.new.Peers) == 0, p.new.AdvertInterval)
	}
	if differ != w.differ {
		w.heard, w.sequences, w.differ = nil, nil, differ
	}
	w.pairs, w.from = pairs, from
	wanted := map[socketKey]bool{}
	for _, p := range pairs {
		wanted[socketKey{p.new.Interface, p.new.VIP.Addr().Is6()}] = true
	}
	for key, stop := range w.sockets {
		if !wanted[key] {
			stop()
			delete(w.sockets, key)
		}
	}
	var errs []error
	for key := range wanted {
		if w.sockets[key] != nil {
			continue
		}
		ctx, stop := context.WithCancel(context.Background())
		if err := w.listen(ctx, key); err != nil {
			stop()
			errs = append(errs, err)
			continue
		}
		if w.sockets == nil {
			w.sockets = map[socketKey]context.CancelFunc{}
		}
		w.sockets[key] = stop
	}
	w.failing.Warn(w.log, errors.Join(errs...), "cannot hear which VRRP settings other nodes have", "can hear which VRRP settings other nodes have")
}

// instances are those whose adverts it is to hear.
func (w *wire) instances() (out []keepalived.Instance) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pairs {
		out = append(out, p.old, p.new)
	}
	return out
}

// last gives when an advert of a generation of an instance was heard last; the zero time
// for never.
func (w *wire) last(instance string, of generation) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.heard[instance][of]
}

// any gives when an advert of a generation was heard last, of whichever instance.
func (w *wire) any(of generation) (last time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, times := range w.heard {
		if t := times[of]; t.After(last) {
			last = t
		}
	}
	return last
}

// staleTime is how old an advert may be that is read now. Those that came while the
// agent was stopped have the settings of then.
const staleTime = time.Second

// listen hears all adverts on a link until ctx ends.
func (w *wire) listen(ctx context.Context, key socketKey) error {
	l, err := listener.OnInterface(key.link, key.ipv6)
	if err != nil {
		return err
	}
	go func() {
		defer l.Close()
		for {
			a, err := l.Receive(ctx)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil: // as of a link that went down
				select {
				case <-ctx.Done():
					return
				case <-time.After(100 * time.Millisecond):
				}
			case a.Waited <= staleTime:
				w.note(key, a, time.Now())
			}
		}
	}()
	return nil
}

// note takes in an advert. The last one of a holder that gives a VIP away counts
// for nothing.
func (w *wire) note(key socketKey, a listener.Received, now time.Time) {
	w.mu.Lock()
	known := slices.Contains(w.from, a.Source) || a.Source.Is6() && a.Source.IsLinkLocalUnicast() && a.Destination.IsMulticast()
	fresh := false
	for _, x := range w.pairs {
		if !known || a.Priority == 0 || key.link != x.new.Interface || int(a.RouterID) != x.new.RouterID ||
			len(a.VIPs) == 0 || a.VIPs[0] != x.new.VIP.Addr() {
			continue
		}
		is := x.generationOf(a)
		if is == neither {
			continue
		}
		if w.heard == nil {
			w.heard = map[string]map[generation]time.Time{}
		}
		if w.heard[x.name] == nil {
			w.heard[x.name] = map[generation]time.Time{}
		}
		fresh = fresh || now.Sub(w.heard[x.name][is]) > quietTime
		if is == newSettings {
			fresh = w.count(a.Source, now, x.new.Interval()) || fresh
		}
		w.heard[x.name][is] = now
	}
	w.mu.Unlock()
	if fresh {
		w.changed()
	}
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

// count takes in an advert with the new settings, and says whether the sender's go on from now
// on.
func (w *wire) count(from netip.Addr, now time.Time, interval time.Duration) bool {
	if w.sequences == nil || len(w.sequences) >= maxSequences {
		w.sequences = map[netip.Addr]sequence{}
	}
	before := w.sequences[from]
	after := before
	if now.Sub(before.last) > max(heardTime, 3*interval) {
		after = sequence{first: now}
	}
	after.last, after.interval, after.count = now, interval, after.count+1
	w.sequences[from] = after
	return after.goesOn() && !before.goesOn()
}

// goesOn says whether a node goes on sending adverts with the new settings.
func (w *wire) goesOn(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.sequences {
		if s.goesOn() && now.Sub(s.last) < heardTime {
			return true
		}
	}
	return false
}

// quietTime is for how long no advert came before one that is news: longer than the
// interval of any profile, so that a holder that goes on is none.
const quietTime = 1500 * time.Millisecond

// generationOf says which settings an advert has. Those that VRRP itself does not tell apart, as
// VRRPv3 of classic and fast in IPv6, differ in how often adverts come. One from beyond
// the link has no settings with the full TTL: no move follows it.
func (x *pair) generationOf(a listener.Received) generation {
	is := func(i *keepalived.Instance) bool {
		multicast := a.Destination.IsMulticast()
		return a.Version == i.Version && multicast == (len(i.Peers) == 0) && (a.TTL == 255 || !multicast && !i.FullTTL)
	}
	old, fresh := is(&x.old), is(&x.new)
	switch {
	case old && fresh:
		fromOld, fromNew := (a.Interval - x.old.Interval()).Abs(), (a.Interval - x.new.Interval()).Abs()
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
