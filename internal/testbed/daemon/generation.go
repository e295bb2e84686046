package daemon

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/internal/testkit"
)

// Generation is a pair of HAProxy and keepalived versions of the same age. OpenShift's releases
// have daemons of three, and so do Debian's releases.
type Generation struct {
	// Name is the Debian release whose packages internal/tools/generations unpacks.
	Name string
	// HAProxy and Keepalived are their versions.
	HAProxy, Keepalived string

	installed bool
}

// The generations.
var (
	Old       = Generation{Name: "bullseye", HAProxy: "2.2.9", Keepalived: "2.1.5"}
	Installed = Generation{Name: "bookworm", HAProxy: "2.6.12", Keepalived: "2.2.7", installed: true}
	New       = Generation{Name: "trixie", HAProxy: "3.0.11", Keepalived: "2.3.3"}
)

// Generations are all of them, the oldest first.
var Generations = []Generation{Old, Installed, New}

// EachGeneration runs a live test with every generation, side by side.
func EachGeneration(t *testing.T, test func(*testing.T, Generation)) {
	testkit.Live(t)
	t.Parallel()
	for _, g := range Generations {
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			test(t, g)
		})
	}
}

// RunsHAProxy reports whether the output for a release with these daemons must work with the
// generation's HAProxy: it is no older than the release's.
func (g Generation) RunsHAProxy(d assets.Daemons) bool { return !older(g.HAProxy, d.HAProxy) }

// RunsKeepalived is RunsHAProxy for keepalived.
func (g Generation) RunsKeepalived(d assets.Daemons) bool {
	return slices.ContainsFunc(d.Keepalived, func(k string) bool { return !older(g.Keepalived, k) })
}

// older reports whether version a, such as "2.2.9", is before b.
func older(a, b string) bool {
	return slices.Compare(numbers(a), numbers(b)) < 0
}

func numbers(version string) (out []int) {
	for part := range strings.SplitSeq(version, ".") {
		n, _ := strconv.Atoi(part) // versions of tables are numbers
		out = append(out, n)
	}
	return out
}

// Root returns the root of the generation's file system.
func (g Generation) Root(t testing.TB) string {
	t.Helper()
	if g.installed {
		return "/"
	}
	root := filepath.Join(testkit.Root(t), ".cache", "generations", g.Name)
	if _, err := os.Stat(root); err != nil {
		t.Fatalf("HAProxy and keepalived of Debian's %s are not unpacked: run `internal/tools/generations .cache/generations` (%v)", g.Name, err)
	}
	return root
}

// program returns the path of one of the generation's daemons in its sandboxes.
func (g Generation) program(t testing.TB, name string) string {
	t.Helper()
	if g.installed {
		return testkit.Program(t, name)
	}
	return "/usr/sbin/" + name
}
