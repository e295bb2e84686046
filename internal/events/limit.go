package events

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// limiter bounds how many events of one subject are written, so that a check that fails
// and succeeds all day does not push everything else out of the record. What is beyond is
// left out, but for the last, which is written when there is room again: it says how things
// stand.
type limiter struct{ subjects map[string]*allowance }

type allowance struct {
	room float64
	at   time.Time
	last *Event // that was left out
	left uint64
}

const (
	// burst is how many events of a subject are written at once, refill how long one more
	// takes: 288 a day, about 80 KB.
	burst  = 20
	refill = 5 * time.Minute
	// maxSubjects is many times what a node has.
	maxSubjects = 512
)

// take gives an event that may be written now.
func (l *limiter) take(e Event, now time.Time) (Event, bool) {
	if l.subjects == nil {
		l.subjects = map[string]*allowance{}
	}
	key := e.subject()
	a := l.subjects[key]
	if a == nil {
		if len(l.subjects) >= maxSubjects {
			l.forget()
		}
		a = &allowance{room: burst, at: now}
		l.subjects[key] = a
	}
	a.fill(now)
	if a.room < 1 {
		a.left++
		a.left += e.LeftOut
		a.last = &e
		return e, false
	}
	a.room--
	e.LeftOut += a.left
	a.last, a.left = nil, 0
	return e, true
}

func (a *allowance) fill(now time.Time) {
	a.room = min(a.room+max(0, now.Sub(a.at).Seconds()/refill.Seconds()), burst)
	a.at = now
}

// forget makes room for another subject: those go that have nothing to write. The others
// are too many only if somebody invents them.
func (l *limiter) forget() {
	maps.DeleteFunc(l.subjects, func(_ string, a *allowance) bool { return a.last == nil })
	if len(l.subjects) >= maxSubjects {
		clear(l.subjects)
	}
}

// due are events that were left out and are written now.
func (l *limiter) due(now time.Time) (out []Event) {
	for _, key := range slices.Sorted(maps.Keys(l.subjects)) {
		a := l.subjects[key]
		if a.last == nil {
			continue
		}
		if a.fill(now); a.room >= 1 {
			a.room--
			out = append(out, a.pending())
		}
	}
	sortByTime(out)
	return out
}

// flush are all that were left out: the record ends.
func (l *limiter) flush() (out []Event) {
	for _, key := range slices.Sorted(maps.Keys(l.subjects)) {
		if a := l.subjects[key]; a.last != nil {
			out = append(out, a.pending())
		}
	}
	sortByTime(out)
	return out
}

// pending takes the event that was left out last; it is none of those any more.
func (a *allowance) pending() Event {
	e := *a.last
	e.LeftOut += a.left - 1
	a.last, a.left = nil, 0
	return e
}

func (l *limiter) waiting() bool {
	for _, a := range l.subjects {
		if a.last != nil {
			return true
		}
	}
	return false
}

func sortByTime(list []Event) {
	slices.SortStableFunc(list, func(a, b Event) int {
		if a.Up != b.Up {
			return int(a.Up - b.Up)
		}
		return strings.Compare(a.subject(), b.subject())
	})
}
