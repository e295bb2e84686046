package daemon

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/vipgen/vipgen/lab/netns"
)

// searchPath is where Debian keeps programs; the PATH of a test may leave out
// the directories for the administrator.
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// program returns the path of a program from a Debian package.
func program(t testing.TB, name string) string {
	t.Helper()
	for _, dir := range filepath.SplitList(searchPath) {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	t.Fatalf("%s is not installed: run `make setup`", name)
	return ""
}

// tool returns the path of a tool that the project builds at a pinned version.
func tool(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(moduleRoot(t), ".cache", "bin", name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s is not built: run `make tools` (%v)", name, err)
	}
	return path
}

// moduleRoot returns the nearest directory above the test's own with a go.mod.
func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("this test does not run inside a Go module")
		}
		dir = parent
	}
}

// newNetwork makes a network that goes away with the test.
func newNetwork(t testing.TB) *netns.Network {
	t.Helper()
	network, err := netns.New()
	if errors.Is(err, netns.ErrNotRoot) {
		t.Fatalf("%v: run the tests as root", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := network.Close(); err != nil {
			t.Error(err)
		}
	})
	return network
}
