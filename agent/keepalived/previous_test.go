package keepalived

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/previous"
	"github.com/vipgen/vipgen/internal/testkit"
)

// This version reads and writes the files that the previous one keeps on a node over restarts
// and reboots.
func TestPreviousVersion(t *testing.T) {
	root := t.TempDir()
	j := &Job{Root: root}
	files := map[string]string{}
	for _, path := range []string{keptSettings, keptVIPs} {
		text := previous.File(t, "node"+path)
		files[path] = string(text)
		testkit.Must(t, os.MkdirAll(filepath.Dir(j.below(path)), 0o755))
		testkit.Must(t, os.WriteFile(j.below(path), text, 0o644))
	}
	settings := readSettings(j.below(keptSettings))
	if want := v1alpha1.ClassicSettings(v1alpha1.ModeUnicast); settings == nil || *settings != want {
		t.Fatalf("settings %+v, want %+v", settings, want)
	}
	before := storedVIPs{path: j.below(keptVIPs)}
	if err := before.read(); err != nil || len(before.stored) != 2 {
		t.Fatalf("VIPs %v, error %v", before.stored, err)
	}

	for path := range files {
		testkit.Must(t, os.Remove(j.below(path)))
	}
	again := storedVIPs{path: j.below(keptVIPs)}
	for _, err := range []error{
		writeSettings(j.below(keptSettings), *settings),
		again.store(before.stored, func(netip.Addr) bool { return false }),
	} {
		testkit.Must(t, err)
	}
	for path, before := range files {
		if now, err := os.ReadFile(j.below(path)); err != nil || string(now) != before {
			t.Errorf("%s: written as %s, before %s, error %v", path, now, before, err)
		}
	}
}
