package migration

import (
	"strings"
	"testing"

	"github.com/vipgen/vipgen/agent/nodes"
)

// FuzzAnnouncement reads arbitrary announcements of VRRP settings by other nodes.
func FuzzAnnouncement(f *testing.F) {
	f.Add(`{"running":"fast unicast VRRPv3 40ms","ready":"","why":"x\ny"}`)
	f.Add(`{"running":"a","at":"9999-12-31T23:59:59Z"}`)
	f.Fuzz(func(t *testing.T, text string) {
		w, ok := ParseAnnouncement(text)
		if !ok {
			return
		}
		if strings.ContainsFunc(w.Why, func(c rune) bool { return c < ' ' || c > '~' }) || len(w.Why) > maxWhy {
			t.Errorf("why: %q", w.Why)
		}
		if out := w.Encode(); out != "" && !nodes.ValidVRRPText(out) {
			t.Errorf("%q", out)
		}
	})
}
