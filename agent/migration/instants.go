package migration

import "time"

// instant is an announced instant, by the monotonic clock.
type instant struct {
	at     time.Time
	agreed bool // all nodes had announced it
}

// instants are the announced instants that still matter. The others can have agreed only
// on an announced instant, even one withdrawn since without their knowledge: they do not
// migrate before it, unless a clock is wrong.
type instants []instant

const (
	// earlyTime is how far ahead another node's clock may be for this node to follow it
	// before any node announced its migration.
	earlyTime = marginTime
	// afterTime is how long after an instant adverts of others may result from it.
	afterTime = lateTime + marginTime
	// sameInstant is the tolerance for equal instants read from two clocks.
	sameInstant = time.Second
)

// add adds an instant, and removes expired ones.
func (m *instants) add(now, at time.Time, agreed bool) {
	kept := (*m)[:0]
	known := false
	for _, o := range *m {
		if o.at.Sub(at).Abs() < sameInstant {
			known = true
			o.agreed = o.agreed || agreed
		}
		if now.Sub(o.at) <= afterTime {
			kept = append(kept, o)
		}
	}
	if !known && now.Sub(at) <= afterTime {
		kept = append(kept, instant{at, agreed})
	}
	*m = kept
}

// next returns the time to the next instant, most at most.
func (m instants) next(now time.Time, most time.Duration) time.Duration {
	for _, o := range m {
		if left := o.at.Sub(now); left > 0 {
			most = min(most, left)
		}
	}
	return most
}

// evidence holds the signs that another node has migrated.
type evidence struct {
	// advert reports a current advert with the new settings, continues that one node has
	// sent them for several of its intervals.
	advert, continues bool
	// announced reports that another node has announced that it runs the new settings.
	announced bool
}

// follow reports whether this node, which is ready, migrates because another has. A host on
// the link can forge an advert with a peer's address, so a single one counts only once
// the agreed instant has come by this node's own clock. Continued adverts count at an
// instant that may have been agreed, shortly before one that was agreed, because a clock
// may be wrong, and at any time with the announcement of a node.
func (m instants) follow(now time.Time, e evidence) bool {
	if !e.advert {
		return false
	}
	for _, o := range m {
		since := now.Sub(o.at)
		switch {
		case since > afterTime:
		case since >= 0 && (o.agreed || e.continues):
			return true
		case since >= -earlyTime && o.agreed && e.continues:
			return true
		}
	}
	return e.continues && e.announced
}

// remember adds the announced instants: the current one, the one in the API, which may be
// older than the agent, and the planned one.
func (m *Machine) remember(v *view, out verdict) {
	if !out.at.IsZero() {
		m.instants.add(v.now, v.now.Add(out.left), out.agreed)
	}
	by := func(at time.Time) { // the wall clock
		if !at.IsZero() {
			m.instants.add(v.now, v.now.Add(at.Sub(v.now.Round(0))), false)
		}
	}
	by(v.planned)
	for _, n := range v.nodes {
		if n.Name == v.self && n.Announced.Ready == v.target.String() {
			by(n.Announced.At)
		}
	}
}
