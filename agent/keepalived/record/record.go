// Package record keeps the history of the VIPs of a node: events for `vipgen doctor`, and
// how often and how long the node held each.
package record

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/vipgen/vipgen/agent/job"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/events"
)

// Record records one run of the job. Events come from keepalived's log at once, and from
// the published state every second.
type Record struct {
	Holdings

	ring      *events.Ring
	lines     lines
	throttled throttled
	late      atomic.Int64 // in nanoseconds
}

// Open opens the record in a directory. first is true for the first run after a boot.
func Open(dir, node, role string, first bool, log *slog.Logger) *Record {
	r := &Record{ring: events.Open(dir, node, log)}
	r.ring.Record(events.Event{Kind: events.AgentStarted, Role: role, First: first})
	return r
}

// Add records an event.
func (r *Record) Add(kind events.Kind) { r.ring.Record(events.Event{Kind: kind}) }

// Check records a fact of a health check.
func (r *Record) Check(f state.Fact) {
	r.ring.Record(events.Event{Kind: events.Check, Name: f.Name, OK: f.OK, Why: job.FirstLine(f.Why)})
}

// Line records the event of a line of keepalived's log. It is used by one goroutine.
func (r *Record) Line(line []byte) {
	if e, ok := r.lines.event(line, time.Now()); ok {
		r.ring.Record(e)
	}
}

// Changes records the differences between two published states. before is nil for the first.
func (r *Record) Changes(before, now *state.Keepalived) {
	if before == nil {
		before = &state.Keepalived{Guard: state.Guard{InPlace: true}}
	}
	for _, e := range changes(before, now) {
		r.ring.Record(e)
	}
}

// Late counts the delay of a poll of the node, and records how long the kernel throttled
// the container since the last one. It is used by one goroutine.
func (r *Record) Late(by time.Duration) {
	if by >= events.LateFrom {
		r.late.Add(int64(by))
	}
	if by := r.throttled.poll(); by >= events.LateFrom {
		r.ring.Record(events.Event{Kind: events.Throttled, For: events.MillisOf(by)})
	}
}

// Lateness returns the sum of delays.
func (r *Record) Lateness() time.Duration { return time.Duration(r.late.Load()) }

// End records that keepalived has ended. err is the failure that ended the job, nil for a
// requested end.
func (r *Record) End(err error) {
	e := events.Event{Kind: events.AgentStopped}
	if err != nil {
		e.Why = job.FirstLine(err.Error())
	}
	r.ring.Record(e)
}

// Close flushes and closes the record.
func (r *Record) Close() { r.ring.Close() }
