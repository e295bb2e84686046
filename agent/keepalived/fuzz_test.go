package keepalived

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

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
