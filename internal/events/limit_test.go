package events

import (
	"fmt"
	"testing"
	"time"
)

// A check that flaps all day leaves room for others: events beyond the limit are counted, and
// the final state is recorded.
func TestLimit(t *testing.T) {
	var l limiter
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var written []Event
	var left uint64
	const n = 24 * 3600
	for i := range n {
		written = append(written, l.admit(Event{Kind: Check, Name: "haproxy", OK: i%2 == 0, Up: Millis(i)}, now)...)
		if i == n/2 {
			written = append(written, l.admit(Event{Kind: Check, Name: "api", Up: Millis(i)}, now)...)
		}
		if i%10 == 0 {
			written = append(written, l.due(now)...)
		}
		now = now.Add(time.Second)
	}
	if !l.waiting() {
		t.Error("nothing was left out")
	}
	written = append(written, l.flush()...)
	api := 0
	for _, e := range written {
		left += e.LeftOut
		if e.Name == "api" {
			api++
		}
	}
	last := written[len(written)-1]
	if len(written) > 3000 || api != 1 || last.Up != n-1 || last.OK || left+uint64(len(written)) != n+1 || l.waiting() {
		t.Errorf("%d written, %d of api, %d left out, the last %+v", len(written), api, left, last)
	}
}

// Events that move a VIP are never dropped, however often it moves; of the dropped delays the
// last and the longest are recorded, since either may be the cause.
func TestMovesAreNeverDropped(t *testing.T) {
	for _, kind := range kinds {
		var l limiter
		now, written := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), 0
		for range 10 * burst {
			written += len(l.admit(Event{Kind: kind, Instance: "x"}, now))
		}
		if noisy := (&Event{Kind: kind}).noisy(); noisy != (written == burst) || !noisy && written != 10*burst {
			t.Errorf("%s: %d written", kind, written)
		}
	}

	var l limiter
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 100 {
		l.admit(Event{Kind: Late, Name: "agent", For: 300, Up: Millis(i)}, now)
		l.admit(Event{Kind: Check, Name: "haproxy", OK: i%2 == 0, Up: Millis(i)}, now)
	}
	l.admit(Event{Kind: Late, Name: "agent", For: 2000, Up: 100}, now)
	l.admit(Event{Kind: Late, Name: "agent", For: 300, Up: 101}, now)
	got := l.admit(Event{Kind: Lost, Up: 102}, now)
	if len(got) != 3 || got[0].Kind != Check || got[0].Up != 99 || got[1].For != 2000 || got[1].LeftOut != 41 || got[2].Kind != Lost || l.waiting() {
		t.Errorf("%+v", got)
	}
}

// Invented subjects take no memory.
func TestLimitOfSubjects(t *testing.T) {
	var l limiter
	now := time.Now()
	for i := range 4 * maxSubjects {
		for range 1 + i%2*burst {
			l.admit(Event{Kind: Check, Name: fmt.Sprint(i)}, now)
		}
	}
	if len(l.subjects) > maxSubjects {
		t.Errorf("%d subjects", len(l.subjects))
	}
}

func (l *limiter) waiting() bool {
	for _, a := range l.subjects {
		if a.last != nil {
			return true
		}
	}
	return false
}
