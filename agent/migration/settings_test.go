package migration

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vipgen/vipgen/agent/nodelist"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

func TestInForce(t *testing.T) {
	fast := v1alpha1.VRRPSettings{Profile: "fast", Mode: "unicast", Version: 3, AdvertIntervalMS: v1alpha1.FastIntervalMS}
	slower, multicast := fast, fast
	slower.AdvertIntervalMS, multicast.Mode = 100, "multicast"
	virtual := v1alpha1.VRRP{Profile: v1alpha1.ProfileVirtual, Mode: v1alpha1.ModeUnicast}.Settings()
	longer := slower
	longer.AdvertIntervalMS = 3 * fast.AdvertIntervalMS
	classic := v1alpha1.ClassicSettings("unicast")
	for _, tt := range []struct {
		name        string
		target      v1alpha1.VRRPSettings
		start, kept *v1alpha1.VRRPSettings
		want        v1alpha1.VRRPSettings
	}{
		{"a new node", fast, nil, nil, fast},
		{"a new node beside the operator's bootstrap", fast, &classic, nil, classic},
		{"until the migration", fast, &classic, &classic, classic},
		{"after the migration", fast, &classic, &fast, fast},
		{"timing changes at once", slower, nil, &fast, slower},
		{"timing changes at once, after the migration", slower, &classic, &fast, slower},
		{"an interval of three times as much waits for the migration", longer, nil, &fast, fast},
		{"a third of it too", fast, nil, &longer, longer},
		{"re-rendered with the platform's profile", virtual, nil, &fast, fast},
		{"the same, of a cluster that began like the operator's", virtual, &classic, &fast, fast},
		{"back to fast", fast, nil, &virtual, virtual},
		{"the mode waits for the migration", multicast, nil, &fast, fast},
		{"the version waits for the migration", classic, nil, &fast, fast},
	} {
		got := InForce(v1alpha1.ClusterVRRP{Target: tt.target, Start: tt.start}, tt.kept)
		testkit.Equal(testkit.In(t, tt.name), tt.want, got)
	}
}

// Nodes of two versions read each other's announcements: the bytes are the same.
func TestPreviousVersion(t *testing.T) {
	for file, want := range map[string]Announcement{
		"announcement.json":           {Running: "classic/unicast/v2/1s", Ready: "fast/unicast/v3/40ms", At: time.Date(2026, 11, 20, 8, 31, 0, 0, time.UTC)},
		"announcement-not-ready.json": {Running: "classic/unicast/v2/1s", Why: "the bootstrap, 192.0.2.9, is still there"},
	} {
		text := string(testkit.Previous(t, file))
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

// docs/upgrade.md lists every reason to wait, in order and with a remedy, and no other.
func TestWaitsAreDocumented(t *testing.T) {
	table := `\|---\|---\|\n`
	for w := range waits {
		if waits[w] == "" {
			t.Errorf("reason %d has no text", w)
		}
		table += `\| ` + regexp.QuoteMeta(Wait(w).String()) + ` \| \S.* \|\n`
	}
	page := strings.ReplaceAll(string(testkit.ReadFile(t, "../../docs/upgrade.md")), "`", "")
	if !regexp.MustCompile(table + `\n`).MatchString(page) {
		t.Errorf("docs/upgrade.md lacks this table:\n%s", table)
	}
}

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
		if out := w.Encode(); out != "" && !nodelist.ValidVRRPText(out) {
			t.Errorf("%q", out)
		}
	})
}
