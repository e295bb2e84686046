package migration

import "time"

// instant is a moment that this node has told the others, by the monotonic clock.
type instant struct {
	at     time.Time
	agreed bool // all nodes had said it
}

// instants are those that matter still. The others can have agreed on no instant that
// this node did not tell them, also when it has withdrawn it since and they do not know
// that yet: before it they do not move, unless a clock is wrong.
type instants []instant

const (
	// earlyTime is by how much the clock of another node may be ahead so that this one
	// follows it before a node has said that it moved.
	earlyTime = marginTime
	// afterTime is for how long after an instant adverts of others may belong to it.
	afterTime = lateTime + marginTime
	// sameInstant is within which two instants are the same, as read from two clocks.
	sameInstant = time.Second
)

// note adds an instant, and forgets those that are over.
func (m *instants) note(now, at time.Time, agreed bool) {
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

// next is how long it is to the next instant, most at most.
func (m instants) next(now time.Time, most time.Duration) time.Duration {
	for _, o := range m {
		if left := o.at.Sub(now); left > 0 {
			most = min(most, left)
		}
	}
	return most
}

// evidence is what says that another node has moved.
type evidence struct {
	// heard says that an advert with the new settings came just now, and goesOn that those of
	// one node have gone on for several of its intervals.
	heard, goesOn bool
	// said says that another node has told the API that it runs the new settings.
	said bool
}

// follow says whether this node, which is ready, moves because another has. Who can send
// with a peer's address on the link can forge an advert, so one alone counts only when
// the agreed instant has come by this node's own clock. Adverts that go on count when an
// instant has come that may have been agreed, shortly before one that was, since a clock
// may be wrong, and at any time with the announcement of a node.
func (m instants) follow(now time.Time, e evidence) bool {
	if !e.heard {
		return false
	}
	for _, o := range m {
		since := now.Sub(o.at)
		switch {
		case since > afterTime:
		case since >= 0 && (o.agreed || e.goesOn):
			return true
		case since >= -earlyTime && o.agreed && e.goesOn:
			return true
		}
	}
	return e.goesOn && e.said
}

// remember notes the instants that this node tells the others: the one of now, the one
// that the API has of it, which may be from before its agent started, and the planned one.
func (m *Machine) remember(v *view, out verdict) {
	if !out.at.IsZero() {
		m.instants.note(v.now, v.now.Add(out.left), out.agreed)
	}
	by := func(at time.Time) { // the wall clock
		if !at.IsZero() {
			m.instants.note(v.now, v.now.Add(at.Sub(v.now.Round(0))), false)
		}
	}
	by(v.planned)
	for _, n := range v.nodes {
		if n.Name == v.self && n.Announced.Ready == v.target.String() {
			by(n.Announced.At)
		}
	}
}
