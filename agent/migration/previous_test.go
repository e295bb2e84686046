package migration

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vipgen/vipgen/internal/previous"
	"github.com/vipgen/vipgen/internal/testkit"
)

// Nodes of two versions read each other's announcements: the bytes are the same.
func TestPreviousVersion(t *testing.T) {
	for file, want := range map[string]Announcement{
		"announcement.json":           {Running: "classic/unicast/v2/1s", Ready: "fast/unicast/v3/40ms", At: time.Date(2026, 11, 20, 8, 31, 0, 0, time.UTC)},
		"announcement-not-ready.json": {Running: "classic/unicast/v2/1s", Why: "the bootstrap, 192.0.2.9, is still there"},
	} {
		text := string(previous.File(t, file))
		got, ok := ParseAnnouncement(text)
		if diff := cmp.Diff(want, got); !ok || diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
		testkit.Equal(testkit.In(t, file), text, want.Encode())
	}
}

// The known fields of a later version's announcement count.
func TestLaterVersion(t *testing.T) {
	got, ok := ParseAnnouncement(`{"running":"fast/unicast/v3/40ms","version":2,"more":{"a":[1]}}`)
	if !ok || got.Running != "fast/unicast/v3/40ms" {
		t.Errorf("%+v, %t", got, ok)
	}
}
