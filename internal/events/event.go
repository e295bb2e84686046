// Package events is a node's record of events around its VIPs: lines of JSON in two files that
// replace each other, which the agent's jobs keepalived and bgp write, each in a folder of its
// own, and `vipgen doctor` reads.
package events

import (
	"net/netip"
	"strings"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// FileName is the newer file, OlderName the one that it replaced.
const (
	FileName  = ".vipgen-events.jsonl"
	OlderName = ".vipgen-events.1.jsonl"
)

// Limits of the record on disk, in bytes: of a file, and of a line.
const (
	maxFile = 512 << 10
	maxLine = 8 << 10
)

// Kind is a kind of event.
type Kind string

// Kinds of events. In brackets: the fields that a kind has besides those of all.
const (
	// AgentStarted [First, Role]; AgentStopping is written when the agent receives a signal to
	// end, AgentStopped when keepalived has ended [Why: the job failed by itself]. A run
	// without these two was killed.
	AgentStarted  Kind = "agent-started"
	AgentStopping Kind = "agent-stopping"
	AgentStopped  Kind = "agent-stopped"

	// KeepalivedStarting: it is about to be started. KeepalivedDied: it ended although it was
	// wanted; KeepalivedStopped: the agent stopped it, because the node takes no part.
	// KeepalivedReload: it gets another configuration.
	KeepalivedStarting Kind = "keepalived-starting"
	KeepalivedDied     Kind = "keepalived-died"
	KeepalivedStopped  Kind = "keepalived-stopped"
	KeepalivedReload   Kind = "keepalived-reload"

	// State: keepalived changed the state of an instance [Instance, State]. The others are its
	// reasons, by keepalived's log: SilentHolder: no advertisement in time; HolderStops: one of
	// priority 0; HigherReceived: the holder received one of a higher priority, or of the same
	// from a higher address [Peer, Priority, Own]. LowerReceived: one of a lower priority, so that
	// the sender holds the VIP, too, or is to be replaced [Peer, Priority, Own]. Link
	// [Interface, State]. StoppedSending: keepalived sent priority 0.
	State          Kind = "state"
	SilentHolder   Kind = "silent-holder"
	HolderStops    Kind = "holder-stops"
	HigherReceived Kind = "higher-heard"
	LowerReceived  Kind = "lower-heard"
	StoppedSending Kind = "stopped-sending"
	Link           Kind = "link"

	// Held and Lost: a VIP was added to an interface of the node, or removed [Instance, VIP].
	Held Kind = "held"
	Lost Kind = "lost"
	// Check: the result of a health check changed [Name, OK, Why].
	Check Kind = "check"
	// Priority of an instance [Instance, VIP, Priority, Own: the base, Terms, OK: no veto].
	// Effective: keepalived applied another one [Instance, Priority, Own: the one before].
	Priority  Kind = "priority"
	Effective Kind = "effective-priority"
	// Instance that the node takes part in [Instance, VIP, Interface, Source, Peers]. LeftOut:
	// instances without the node [Reasons].
	Instance Kind = "instance"
	LeftOut  Kind = "left-out"
	// Settings of VRRP in force [Settings]. Migration: the progress of a migration to others
	// [Settings: the new ones, State, At].
	Settings  Kind = "settings"
	Migration Kind = "move"
	// Refused: a configuration was not applied [Why]; without Why: it is applied again.
	Refused Kind = "refused"
	// Holder: the holder of a VIP that the node does not hold [Instance, VIP, Peer, Name,
	// Priority].
	Holder Kind = "holder"
	// Strangers: VRRP packets of hosts outside of the groups were dropped [Count]. Guard:
	// whether such packets are kept from keepalived [OK].
	Strangers Kind = "strangers"
	Guard     Kind = "guard"
	// Late: the agent or keepalived ran later than due [Name, For]. Throttled: the kernel
	// throttled the container [For].
	Late      Kind = "late"
	Throttled Kind = "throttled"

	// Announced: whether the job bgp announces a VIP [VIP, Instance: the VIP, OK, Priority: the
	// preference, State: bgp or table, Why]. Session: whether a router has the announcements [Peer,
	// Name: the router, OK, State: of the session, Why: the problem, package state]. Problem: what
	// prevents announcements [Why]; without Why: nothing does.
	Announced Kind = "announced"
	Session   Kind = "bgp-session"
	Problem   Kind = "bgp-problem"
)

// States of instances, of links, and of migrations.
const (
	Master = "MASTER"
	Backup = "BACKUP"
	Fault  = "FAULT"

	Up   = "up"
	Down = "down"

	Pending   = "pending" // something is missing
	Agreed    = "agreed"  // all nodes migrate at the same instant
	Migrating = "moving"
	Over      = "over"
)

// Event is a line of the record. Durations are in milliseconds.
type Event struct {
	// Seq counts the lines of a node, over restarts and reboots.
	Seq uint64 `json:"seq"`
	// Boot is the kernel's ID of this boot, Up the time since then (CLOCK_BOOTTIME), which no
	// step of the clock changes. Time is by the node's clock.
	Boot string    `json:"boot,omitempty"`
	Up   Millis    `json:"up"`
	Time time.Time `json:"time"`
	Node string    `json:"node"`
	// Job is the job that wrote it; empty for keepalived.
	Job  string `json:"job,omitempty"`
	Kind Kind   `json:"kind"`

	Instance  string                 `json:"instance,omitempty"`
	VIP       netip.Addr             `json:"vip,omitzero"`
	Interface string                 `json:"interface,omitempty"`
	Name      string                 `json:"name,omitempty"`
	Role      string                 `json:"role,omitempty"`
	State     string                 `json:"state,omitempty"`
	OK        bool                   `json:"ok,omitempty"`
	First     bool                   `json:"firstSinceBoot,omitempty"`
	Peer      netip.Addr             `json:"peer,omitzero"`
	Priority  int                    `json:"priority,omitempty"`
	Own       int                    `json:"own,omitempty"`
	Source    netip.Addr             `json:"source,omitzero"`
	Peers     []netip.Addr           `json:"peers,omitempty"`
	Terms     []Term                 `json:"terms,omitempty"`
	Settings  *v1alpha1.VRRPSettings `json:"settings,omitempty"`
	At        time.Time              `json:"at,omitzero"`
	For       Millis                 `json:"for,omitempty"`
	Count     uint64                 `json:"count,omitempty"`
	Why       string                 `json:"why,omitempty"`
	Reasons   []string               `json:"reasons,omitempty"`

	// OnTime is how long before the event the agent had run without a delay of LateFrom. Delay
	// is how much later than it happened the event may be recorded, as the agent had not run
	// for so long.
	OnTime Millis `json:"onTime,omitempty"`
	Delay  Millis `json:"delay,omitempty"`
	// Again marks a repeated event: the current state, at the begin of a file.
	Again bool `json:"again,omitempty"`
	// LeftOut counts events like this one that were dropped before it, as there were too many
	// of them. Missed counts events of any kind that are missing before it, since they could
	// not be written for long.
	LeftOut uint64 `json:"leftOut,omitempty"`
	Missed  uint64 `json:"missed,omitempty"`
}

// LateFrom is the delay of the agent from which it is recorded: a node that busy, or paused,
// may have sent no advertisement either. The agent has no scheduling policy of its own, so it
// is late sooner than keepalived.
const LateFrom = 200 * time.Millisecond

// Term is a part of a priority; one without points is a veto.
type Term struct {
	Name   string `json:"name"`
	Points int    `json:"points,omitempty"`
	On     bool   `json:"on"`
}

// Millis is a duration in whole milliseconds.
type Millis int64

// MillisOf rounds down.
func MillisOf(d time.Duration) Millis { return Millis(d.Milliseconds()) }

func (m Millis) Duration() time.Duration { return time.Duration(m) * time.Millisecond }

// subject returns the subject of an event: its last event is its current state.
func (e *Event) subject() string {
	return strings.Join([]string{string(e.Kind), e.Instance, e.Name, e.Interface}, "\x00")
}

// noisy reports whether an event may be repeated for long without a change of any VIP. Moves of
// VIPs and their reasons are recorded each time.
func (e *Event) noisy() bool {
	switch e.Kind {
	case Check, Late, Throttled, Strangers, Guard, Refused, Holder, LowerReceived, Problem:
		return true
	}
	return false
}

// isState reports whether the last event of its subject is a state until the next.
func (e *Event) isState() bool {
	switch e.Kind {
	case AgentStarted, State, Check, Priority, Effective, Instance, LeftOut, Settings, Guard, Announced, Session, Problem:
		return true
	}
	return false
}

const (
	maxText = 200
	maxList = 64
)

// bound truncates an event to fit a line.
func (e *Event) bound() {
	for _, s := range []*string{&e.Instance, &e.Interface, &e.Name, &e.State, &e.Why, &e.Node, &e.Job, &e.Boot, &e.Role} {
		*s = truncate(*s)
	}
	e.Peers, e.Terms, e.Reasons = truncateList(e.Peers), truncateList(e.Terms), truncateList(e.Reasons)
	for i := range e.Reasons {
		e.Reasons[i] = truncate(e.Reasons[i])
	}
}

func truncate(s string) string {
	if len(s) > maxText {
		return strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	return s
}

func truncateList[T any](list []T) []T {
	if len(list) > maxList {
		list = list[:maxList]
	}
	return append([]T(nil), list...)
}
