package nodeip

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// Forwarding is enabled for both families where the node's addresses are, and nowhere else. The
// kernel's own settings are changed by TestUnitsRunUnchanged in lab/agents.
func TestHardCase34(t *testing.T) {
	root := t.TempDir()
	const net = "/proc/sys/net/"
	want := map[string]string{}
	for path, value := range map[string][2]string{ // before and after
		"ipv4/conf/eth0/forwarding": {"0\n", "1"}, "ipv6/conf/eth0/forwarding": {"0\n", "1"}, "ipv6/conf/eth0/accept_ra": {"1\n", "2"},
		"ipv4/conf/eth1/forwarding": {"0\n", "1"}, "ipv6/conf/eth1/forwarding": {"1\n", "1\n"}, "ipv6/conf/eth1/accept_ra": {"0\n", "0\n"},
		"ipv4/conf/eth2.100/forwarding": {"0\n", "0\n"}, "ipv6/conf/eth2.100/accept_ra": {"1\n", "1\n"},
	} {
		testkit.WriteFile(t, filepath.Join(root, net, path), []byte(value[0]))
		want[net+path] = value[1]
	}
	c := chosen("192.0.2.10/24", "2001:db8::10/64")
	c.Addresses[0].Interface, c.Addresses[1].Interface = "eth0", "eth1"
	for _, changed := range [][]string{{"ipv4 on eth0", "ipv6 on eth0", "ipv4 on eth1"}, nil} {
		got, err := Forward(root, c)
		testkit.Must(t, err)
		testkit.Equal(t, changed, got)
		testkit.Equal(t, want, tree(t, root))
	}
}

// TestForwardReports: failures are reported for each interface; settings that the kernel lacks are
// ignored.
func TestForwardReports(t *testing.T) {
	root := t.TempDir()
	c := chosen("192.0.2.10/24", "2001:db8::10/64")
	c.Addresses[0].Interface, c.Addresses[1].Interface = "eth0", "eth1"
	if changed, err := Forward(root, c); err != nil || len(changed) > 0 {
		t.Errorf("without settings: %q, %v", changed, err)
	}
	for _, name := range []string{"eth0", "eth1"} {
		testkit.Must(t, os.MkdirAll(filepath.Join(root, "proc/sys/net/ipv4/conf", name, "forwarding"), 0o755))
	}
	_, err := Forward(root, c)
	if err == nil || !strings.Contains(err.Error(), "ipv4 on eth0") || !strings.Contains(err.Error(), "ipv4 on eth1") {
		t.Errorf("error %v, want one that names both interfaces", err)
	}
}
