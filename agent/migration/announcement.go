package migration

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/vipgen/vipgen/agent/nodelist"
)

// Announcement is the state of a node's VRRP settings for the other nodes, stored on its
// Node. Settings have the format of VRRPSettings.String.
type Announcement struct {
	// Running are the settings in force.
	Running string `json:"running"`
	// Ready are the settings that it could migrate to at once; empty while it is not ready,
	// for the reason Why.
	Ready string `json:"ready,omitempty"`
	Why   string `json:"why,omitempty"`
	// At is the instant of the migration that it agrees to.
	At time.Time `json:"at,omitzero"`
}

// maxWhy bounds a reason, in bytes: it is for people.
const maxWhy = 300

// Encode encodes the announcement for ParseAnnouncement.
func (a Announcement) Encode() string {
	a.At = a.At.UTC()
	a.Why = oneLine(a.Why)
	data, err := json.Marshal(a)
	if err != nil || !nodelist.ValidVRRPText(string(data)) {
		return ""
	}
	return string(data)
}

// oneLine shortens a reason to one line of ASCII for an announcement.
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

// ParseAnnouncement parses the announcement of another node; ok is false if it is
// invalid.
func ParseAnnouncement(s string) (a Announcement, ok bool) {
	if json.Unmarshal([]byte(s), &a) != nil || a.Running == "" {
		return Announcement{}, false
	}
	a.Why = oneLine(a.Why)
	return a, true
}
