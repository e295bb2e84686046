package keepalived

import (
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/internal/events"
)

// logLines finds events in keepalived's log, the only source with millisecond times of state
// changes, and of changes that no advertisement caused. The texts are those of keepalived
// 2.2.7; other lines are ignored. It is used only by the log reader.
type logLines struct {
	// received holds the last time of each advertisement: keepalived logs every one.
	received map[advertisement]time.Time
}

type advertisement struct {
	kind     events.Kind
	instance string
	peer     netip.Addr
	priority int
}

const (
	// quietFor is the interval at which an advertisement is recorded again: more than an
	// advertisement interval.
	quietFor = 3 * time.Second
	// maxReceived is many times the number of peers and priorities.
	maxReceived = 256
)

// leastLate is the least recorded delay of keepalived: less than one interval.
const leastLate = 30 * time.Millisecond

// maxLate bounds a recorded delay.
const maxLate = 24 * time.Hour

// event returns the event of a line, unless there is none or it was recorded just now.
func (l *logLines) event(line []byte, now time.Time) (events.Event, bool) {
	e, ok := parseLine(line)
	if !ok {
		return e, false
	}
	if e.Kind == events.State || len(l.received) >= maxReceived {
		clear(l.received) // later ones have another cause
	}
	if e.Kind != events.LowerReceived && e.Kind != events.HigherReceived {
		return e, true
	}
	if l.received == nil {
		l.received = map[advertisement]time.Time{}
	}
	key := advertisement{e.Kind, e.Instance, e.Peer, e.Priority}
	before, again := l.received[key]
	l.received[key] = now
	return e, !again || now.Sub(before) >= quietFor
}

// parseLine parses a line of keepalived's log after its time stamp, if any.
func parseLine(line []byte) (e events.Event, ok bool) {
	_, text := logging.ParseLine(line)
	if rest, found := strings.CutPrefix(text, "("); found {
		name, said, found := strings.Cut(rest, ") ")
		e, ok = parseInstance(said)
		e.Instance = name
		return e, ok && found
	}
	if rest, found := strings.CutPrefix(text, "A thread timer expired "); found {
		seconds, _, _ := strings.Cut(rest, " ")
		s, err := strconv.ParseFloat(seconds, 64)
		if late := time.Duration(min(s, maxLate.Seconds()) * float64(time.Second)); err == nil && late >= leastLate {
			return events.Event{Kind: events.Late, Name: "keepalived", For: events.MillisOf(late)}, true
		}
		return e, false
	}
	if rest, found := strings.CutPrefix(text, "Netlink reports "); found {
		name, state, _ := strings.Cut(rest, " ")
		return events.Event{Kind: events.Link, Interface: name, State: state}, state == events.Up || state == events.Down
	}
	return e, false
}

// parseInstance reads the part of a line after the name of an instance.
func parseInstance(text string) (e events.Event, ok bool) {
	word := strings.Fields(text)
	at := func(i int) string {
		if i < len(word) {
			return strings.Trim(word[i], "(),")
		}
		return ""
	}
	number := func(i int) int { n, _ := strconv.Atoi(at(i)); return n }
	has := func(prefix string) bool { return strings.HasPrefix(text, prefix) }
	switch {
	case has("Entering "):
		e.Kind, e.State = events.State, at(1)
		return e, e.State == events.Master || e.State == events.Backup || e.State == events.Fault
	case has("Receive advertisement timeout"):
		e.Kind = events.SilentHolder
	case has("Backup received priority 0 advertisement"):
		e.Kind = events.HolderStops
	case has("sent 0 priority"):
		e.Kind = events.StoppedSending
	case has("Changing effective priority from "):
		e.Kind, e.Own, e.Priority = events.Effective, number(4), number(6)
	case has("Master received advert from "): // ADDRESS with higher priority P, ours O
		e.Kind, e.Priority, e.Own = events.HigherReceived, number(8), number(10)
		if at(6) == "same" { // ADDRESS with same priority P but higher IP address than ours
			e.Own = e.Priority
		}
		e.Peer = parsePeer(at(4))
	case has("Received advert from "): // ADDRESS with lower priority P, ours O
		e.Kind, e.Priority, e.Own = events.LowerReceived, number(7), number(9)
		e.Peer = parsePeer(at(3))
	case has("received lower priority "): // (P) advert from ADDRESS
		e.Kind, e.Priority = events.LowerReceived, number(3)
		e.Peer = parsePeer(at(6))
	default:
		return e, false
	}
	return e, true
}

func parsePeer(text string) netip.Addr {
	a, _ := netip.ParseAddr(text)
	return a.WithZone("")
}
