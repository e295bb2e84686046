package keepalived

import (
	_ "embed"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/testkit"
)

//go:embed testdata/keepalived.data
var dumped string

func TestParseDump(t *testing.T) {
	want := map[string]state.Holder{
		"demo_API_0": {Address: netip.MustParseAddr("192.0.2.2"), Priority: 68},
		"demo_API_1": {Address: netip.MustParseAddr("fe80::2"), Priority: 65},
	}
	if got := parseDump([]byte(dumped)); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A dump that is still being written is ignored, and one written within the same tick of the
// clock is not missed, whatever the clock was set to (hard case 27).
func TestDumpIsReadWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "keepalived.data")
		write := func(text string, at time.Time) {
			t.Helper()
			testkit.WriteFile(t, path, []byte(text))
			testkit.Must(t, os.Chtimes(path, at, at))
		}
		d := dump{path: path}
		expect := func(when string, instances ...string) {
			t.Helper()
			testkit.Equal(testkit.In(t, when), instances, slices.Sorted(maps.Keys(d.poll())))
		}
		now := time.Now()
		write(dumped[:strings.Index(dumped, " VRRP Instance = demo_INGRESS_0")], now)
		expect("half of it")
		write(dumped, now)
		time.Sleep(half)
		expect("all of it", "demo_API_0", "demo_API_1")
		write("", now.Add(time.Hour))
		expect("the clock was set back")
	})
}

func FuzzParseDump(f *testing.F) {
	f.Add([]byte(dumped))
	f.Add([]byte(" VRRP Instance = \n   State = BACKUP\n   Master router = ::\n   Master priority = 999\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for name, h := range parseDump(data) {
			if name == "" || !h.Address.IsValid() || h.Address.Zone() != "" || h.Priority < 0 || h.Priority > 255 {
				t.Errorf("%q: %+v", name, h)
			}
		}
	})
}
