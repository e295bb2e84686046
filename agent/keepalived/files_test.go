package keepalived

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

func TestSettingsOnDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settings")
	if readSettings(path) != nil {
		t.Error("settings without a file")
	}
	want := v1alpha1.ClassicSettings("multicast")
	testkit.Must(t, writeSettings(path, want))
	if got := readSettings(path); got == nil || *got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, bad := range []string{"", "{", "{}", `{"profile":"fast","mode":"unicast","version":4,"advertIntervalMS":100}`} {
		testkit.WriteFile(t, path, []byte(bad))
		if got := readSettings(path); got != nil {
			t.Errorf("%q is taken for %+v", bad, got)
		}
	}
}

// This version reads and writes the files that the previous one keeps on a node over restarts
// and reboots.
func TestPreviousVersion(t *testing.T) {
	text := testkit.Previous(t, "node"+keptSettings)
	path := written(t, text)
	settings := readSettings(path)
	if want := v1alpha1.ClassicSettings(v1alpha1.ModeUnicast); settings == nil || *settings != want {
		t.Fatalf("settings %+v, want %+v", settings, want)
	}
	testkit.Must(t, os.Remove(path))
	testkit.Must(t, writeSettings(path, *settings))
	testkit.Equal(t, string(text), string(testkit.ReadFile(t, path)))

	text = testkit.Previous(t, "node"+keptVIPs)
	before, again := storedVIPs{path: written(t, text)}, storedVIPs{path: filepath.Join(t.TempDir(), "vips")}
	testkit.Must(t, before.read())
	testkit.Equal(t, 2, len(before.stored))
	testkit.Must(t, again.store(before.stored, func(netip.Addr) bool { return false }))
	testkit.Equal(t, string(text), string(testkit.ReadFile(t, again.path)))
}

// written returns the path of a file with the given content.
func written(t *testing.T, data []byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "file")
	testkit.Must(t, os.WriteFile(path, data, 0o600))
	return path
}

// FuzzSettings reads any settings that a node may find on its disk.
func FuzzSettings(f *testing.F) {
	f.Add([]byte(fastUnicast))
	f.Add([]byte(classicKept))
	f.Add([]byte(`{"profile":"fast","mode":"unicast","version":2,"advertIntervalMS":-1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := written(t, data)
		v := readSettings(path)
		if v == nil {
			return
		}
		if v.AdvertIntervalMS <= 0 || v.Version != 2 && v.Version != 3 {
			t.Fatalf("%+v", *v)
		}
		testkit.Must(t, writeSettings(path, *v))
		if again := readSettings(path); again == nil || *again != *v {
			t.Errorf("%+v is written, and read as %+v", *v, again)
		}
	})
}

// FuzzPlaced reads arbitrary lists of VIPs that an earlier keepalived left.
func FuzzPlaced(f *testing.F) {
	f.Add([]byte(`["192.0.2.5","2001:db8::5"]`))
	f.Add([]byte(`["192.0.2.5","","fe80::1%eth0",7]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		v := storedVIPs{path: written(t, data)}
		v.read()
		for _, a := range v.stored {
			if !a.IsValid() || a.Zone() != "" {
				t.Errorf("%q", a)
			}
		}
		vip := netip.MustParseAddr("192.0.2.5")
		testkit.Must(t, v.store([]netip.Addr{vip}, func(netip.Addr) bool { return true }))
		again := storedVIPs{path: v.path}
		if err := again.read(); err != nil || !slices.Equal(again.stored, []netip.Addr{vip}) {
			t.Errorf("%v, %v", again.stored, err)
		}
	})
}
