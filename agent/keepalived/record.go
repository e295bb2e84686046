package keepalived

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/vipgen/vipgen/agent/job"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/events"
)

// record keeps the history of the VIPs of the node in one run of the job: events for
// `vipgen doctor`, and how often and how long the node held each. Events come from keepalived's
// log at once, and from the published state every second.
type record struct {
	holdings

	ring      *events.Ring
	lines     logLines
	throttled throttled
	late      atomic.Int64 // in nanoseconds
}

// openRecord opens the record in a directory. first is true for the first run after a boot.
func openRecord(dir, node, role string, first bool, log *slog.Logger) *record {
	r := &record{ring: events.Open(dir, node, "", log)}
	r.ring.Record(events.Event{Kind: events.AgentStarted, Role: role, First: first})
	return r
}

// add records an event.
func (r *record) add(kind events.Kind) { r.ring.Record(events.Event{Kind: kind}) }

// checked records a fact of a health check.
func (r *record) checked(f state.Fact) {
	r.ring.Record(events.Event{Kind: events.Check, Name: f.Name, OK: f.OK, Why: job.FirstLine(f.Why)})
}

// line records the event of a line of keepalived's log. It is used by one goroutine.
func (r *record) line(line []byte) {
	if e, ok := r.lines.event(line, time.Now()); ok {
		r.ring.Record(e)
	}
}

// changed records the differences between two published states. before is nil for the first.
func (r *record) changed(before, now *state.Keepalived) {
	if before == nil {
		before = &state.Keepalived{Guard: state.Guard{InPlace: true}}
	}
	for _, e := range changes(before, now) {
		r.ring.Record(e)
	}
}

// delayed counts the delay of a poll of the node, and records how long the kernel throttled
// the container since the last one. It is used by one goroutine.
func (r *record) delayed(by time.Duration) {
	if by >= events.LateFrom {
		r.late.Add(int64(by))
	}
	if by := r.throttled.poll(); by >= events.LateFrom {
		r.ring.Record(events.Event{Kind: events.Throttled, For: events.MillisOf(by)})
	}
}

// lateness returns the sum of delays.
func (r *record) lateness() time.Duration { return time.Duration(r.late.Load()) }

// ended records that keepalived has ended. err is the failure that ended the job, nil for a
// requested end.
func (r *record) ended(err error) {
	e := events.Event{Kind: events.AgentStopped}
	if err != nil {
		e.Why = job.FirstLine(err.Error())
	}
	r.ring.Record(e)
}

// close flushes and closes the record.
func (r *record) close() { r.ring.Close() }
