package events

import (
	"fmt"
	"testing"
	"time"
)

// A check that fails and succeeds all day leaves room for others: what is beyond the limit
// is counted, and how it stands in the end is there.
func TestLimit(t *testing.T) {
	var l limiter
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var written []Event
	var left uint64
	note := func(e Event) {
		if e, ok := l.take(e, now); ok {
			written = append(written, e)
		}
	}
	const n = 24 * 3600
	for i := range n {
		note(Event{Kind: Check, Name: "haproxy", OK: i%2 == 0, Up: Millis(i)})
		if i == n/2 {
			note(Event{Kind: Check, Name: "api", Up: Millis(i)})
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
	if len(written) > 400 || api != 1 || last.Up != n-1 || last.OK || left+uint64(len(written)) != n+1 || l.waiting() {
		t.Errorf("%d written, %d of api, %d left out, the last %+v", len(written), api, left, last)
	}
}

// Whoever invents subjects takes no memory for them.
func TestLimitOfSubjects(t *testing.T) {
	var l limiter
	now := time.Now()
	for i := range 100_000 {
		for range 1 + i%2*burst {
			l.take(Event{Kind: Check, Name: fmt.Sprint(i)}, now)
		}
	}
	if len(l.subjects) > maxSubjects {
		t.Errorf("%d subjects", len(l.subjects))
	}
}
