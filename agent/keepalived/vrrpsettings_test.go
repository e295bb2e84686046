package keepalived

import (
	"path/filepath"
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
