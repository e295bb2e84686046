package rig

import (
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/e2e/machine"
)

// Patience is the time limit for operations that take seconds on an idle machine.
const Patience = 10 * time.Minute

// NewMachine creates a machine, which is removed when the test ends.
func NewMachine(t testing.TB, network *netns.Network, name, addr string, programs map[string]string) *machine.Machine {
	t.Helper()
	node, err := network.AddNode(name, netip.MustParsePrefix(addr))
	testkit.Must(t, err)
	m, err := machine.New(node, t.TempDir(), programs)
	testkit.Must(t, err)
	closeAtEnd(t, m)
	return m
}

// NewSystem creates a machine with an init, without address and name, and with an empty disk. It is
// removed when the test ends.
func NewSystem(t testing.TB, network *netns.Network, name string, programs map[string]string) *machine.Machine {
	t.Helper()
	node, err := network.AddNode(name)
	testkit.Must(t, err)
	m, err := machine.NewSystem(node, t.TempDir(), made(t, "system"), programs)
	testkit.Must(t, err)
	closeAtEnd(t, m)
	return m
}

func closeAtEnd(t testing.TB, m *machine.Machine) {
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		CheckTraces(t, m)
	})
}

// CheckTraces fails the test if anything of a machine without power is left.
func CheckTraces(t testing.TB, m *machine.Machine) {
	t.Helper()
	for _, trace := range traces(t, m) {
		t.Errorf("of %s, which has no power, there is %s", m.Name, trace)
	}
}

// traces returns what this machine still has of a machine, besides its directory and its network
// namespace.
func traces(t testing.TB, m *machine.Machine) (out []string) {
	t.Helper()
	groups, err := filepath.Glob("/sys/fs/cgroup/*" + m.Cgroup())
	testkit.Must(t, err)
	for _, g := range groups {
		out = append(out, "control group "+g)
	}
	pids, err := exec.Command("ip", "netns", "pids", m.Namespace()).Output()
	testkit.Must(t, err)
	for _, pid := range strings.Fields(string(pids)) {
		out = append(out, "process "+pid)
	}
	tables, err := filepath.Glob("/proc/[0-9]*/mountinfo")
	testkit.Must(t, err)
	for _, table := range tables {
		data, err := os.ReadFile(table)
		if err == nil && strings.Contains(string(data), m.Dir()) {
			out = append(out, "mounts, in "+table)
		}
	}
	return out
}
