package migration

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/vipgen/vipgen/agent/nodes"
)

// Announcement is what a node says of its VRRP settings, on its Node, for the other nodes.
// Settings are written as VRRPSettings.String.
type Announcement struct {
	// Running are the settings in force.
	Running string `json:"running"`
	// Ready are those that it could move to at once; empty while it is not ready,
	// which Why explains.
	Ready string `json:"ready,omitempty"`
	Why   string `json:"why,omitempty"`
	// At is the instant of the move that it agrees to.
	At time.Time `json:"at,omitzero"`
}

// maxWhy bounds a reason, in bytes: it is for people.
const maxWhy = 300

// Encode writes what ParseAnnouncement reads.
func (a Announcement) Encode() string {
	a.At = a.At.UTC()
	a.Why = oneLine(a.Why)
	data, err := json.Marshal(a)
	if err != nil || !nodes.VRRPText(string(data)) {
		return ""
	}
	return string(data)
}

// oneLine makes a reason fit for an announcement: one short line of ASCII.
func oneLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	s = strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' || strings.ContainsRune(`"\<>&`, c) {
			return '.'
		}
		return c
	}, s)
	return s[:min(len(s), maxWhy)]
}

// ParseAnnouncement reads what another node says; ok is false for what no agent writes.
func ParseAnnouncement(s string) (a Announcement, ok bool) {
	if json.Unmarshal([]byte(s), &a) != nil || a.Running == "" {
		return Announcement{}, false
	}
	a.Why = oneLine(a.Why)
	return a, true
}
