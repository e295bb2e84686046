package keepalived

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/vipgen/vipgen/agent/nodes"
)

// word is what a node says of how it elects, on its Node, for the other nodes.
// Ways of electing are written as VRRPSettings.String.
type word struct {
	// Running is the way in force.
	Running string `json:"running"`
	// Ready is the way that it could move to at once; empty while it is not ready,
	// which Why explains.
	Ready string `json:"ready,omitempty"`
	Why   string `json:"why,omitempty"`
	// At is the instant of the move that it agrees to.
	At time.Time `json:"at,omitzero"`
}

// maxWhy bounds a reason, in bytes: it is for people.
const maxWhy = 300

// encode writes what decodeWord reads.
func (w word) encode() string {
	w.At = w.At.UTC()
	w.Why = oneLine(w.Why)
	data, err := json.Marshal(w)
	if err != nil || !nodes.VRRPText(string(data)) {
		return ""
	}
	return string(data)
}

// oneLine makes a reason fit for a word: one short line of ASCII.
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

// decodeWord reads what another node says; ok is false for what no agent writes.
func decodeWord(s string) (w word, ok bool) {
	if json.Unmarshal([]byte(s), &w) != nil || w.Running == "" {
		return word{}, false
	}
	w.Why = oneLine(w.Why)
	return w, true
}
