package keepalived

import (
	"log/slog"
	"os"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

// What an agent of before left until a reboot is taken over once: VIPs that its keepalived
// may have put on an interface are removed, and bounds of queues put back.
func TestAdopt(t *testing.T) {
	root := t.TempDir()
	j := &Job{Root: root}
	put := func(path, text string) {
		t.Helper()
		testkit.WriteFile(t, j.below(path), []byte(text))
	}
	expect := func(path, want string) {
		t.Helper()
		if got, _ := os.ReadFile(j.below(path)); string(got) != want {
			t.Errorf("%s holds %q, want %q", path, got, want)
		}
	}
	put(oldVIPs, `["192.0.2.5"]`)
	put(keptVIPs, "") // kubelet makes the directory for the container
	if err := os.Remove(j.below(keptVIPs)); err != nil {
		t.Fatal(err)
	}
	adopt(root, slog.New(slog.NewTextHandler(t.Output(), nil)))
	expect(keptVIPs, `["192.0.2.5"]`)
	expect(keptQueues, "")
	if err := os.MkdirAll(j.below(v1alpha1.TrackDir), 0o755); err != nil {
		t.Fatal(err)
	}
	put(keptVIPs, `["192.0.2.6"]`)
	put(oldQueues, `[{"interface":"eth0","bytes":1}]`)
	adopt(root, slog.New(slog.NewTextHandler(t.Output(), nil)))
	expect(keptVIPs, `["192.0.2.6"]`)
	expect(keptQueues, "")
}
