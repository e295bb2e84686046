package events

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// limiter bounds the number of noisy events of one subject, so that a check that fails and
// succeeds all day does not push everything else out of the record. Excess events are dropped,
// except the last, which is the current state, and the longest delay: it is written when there
// is room again, or when a VIP moves, as it may be the reason. Other events are never dropped.
type limiter struct{ subjects map[string]*allowance }

type allowance struct {
	room float64
	at   time.Time
	last *Event // dropped
	left uint64
}

const (
	// burst is the number of a subject's events that are written at once, refill the time for
	// one more: 2,880 a day, about 700 KB.
	burst  = 60
	refill = 30 * time.Second
	// maxSubjects is many times what a node has.
	maxSubjects = 512
)

// admit returns the events to write now: none, or e after those that it needs.
func (l *limiter) admit(e Event, now time.Time) []Event {
	if !e.noisy() || e.Missed > 0 {
		return append(l.flush(), e)
	}
	a := l.allowanceOf(e.subject(), now)
	a.fill(now)
	if a.room < 1 {
		a.left += 1 + e.LeftOut
		if a.last == nil || e.For >= a.last.For {
			a.last = &e
		}
		return nil
	}
	a.room--
	e.LeftOut += a.left
	a.last, a.left = nil, 0
	if e.Kind == LowerReceived { // two nodes hold a VIP
		return append(l.flush(), e)
	}
	return []Event{e}
}

func (l *limiter) allowanceOf(subject string, now time.Time) *allowance {
	if l.subjects == nil {
		l.subjects = map[string]*allowance{}
	}
	a := l.subjects[subject]
	if a == nil {
		if len(l.subjects) >= maxSubjects {
			l.forget()
		}
		a = &allowance{room: burst, at: now}
		l.subjects[subject] = a
	}
	return a
}

func (a *allowance) fill(now time.Time) {
	a.room = min(a.room+max(0, now.Sub(a.at).Seconds()/refill.Seconds()), burst)
	a.at = now
}

// forget makes room for another subject, by dropping those with nothing to write. Only made-up
// subjects are more.
func (l *limiter) forget() {
	maps.DeleteFunc(l.subjects, func(_ string, a *allowance) bool { return a.last == nil })
	if len(l.subjects) >= maxSubjects {
		clear(l.subjects)
	}
}

// due returns the dropped events that are written now.
func (l *limiter) due(now time.Time) []Event {
	return l.pending(func(a *allowance) bool {
		a.fill(now)
		if a.room < 1 {
			return false
		}
		a.room--
		return true
	})
}

func (l *limiter) flush() []Event {
	return l.pending(func(*allowance) bool { return true })
}

// pending removes the selected dropped events and returns them.
func (l *limiter) pending(selected func(*allowance) bool) (out []Event) {
	for _, a := range l.subjects {
		if a.last == nil || !selected(a) {
			continue
		}
		e := *a.last
		e.LeftOut += a.left - 1
		a.last, a.left = nil, 0
		out = append(out, e)
	}
	sortByTime(out)
	return out
}

func sortByTime(list []Event) {
	slices.SortFunc(list, func(a, b Event) int {
		return cmp.Or(cmp.Compare(a.Up, b.Up), strings.Compare(a.subject(), b.subject()))
	})
}
