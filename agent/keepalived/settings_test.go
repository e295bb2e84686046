package keepalived

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

func TestSettingsOnDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settings")
	if readSettings(path) != nil {
		t.Error("settings without a file")
	}
	want := v1alpha1.ClassicSettings("multicast")
	if err := writeSettings(path, want); err != nil {
		t.Fatal(err)
	}
	if got := readSettings(path); got == nil || *got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, bad := range []string{"", "{", "{}", `{"profile":"fast","mode":"unicast","version":4,"advertIntervalMS":100}`} {
		if err := os.WriteFile(path, []byte(bad), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := readSettings(path); got != nil {
			t.Errorf("%q is taken for %+v", bad, got)
		}
	}
}
