package nodeip

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// TestHardCase34 uses the kernel's own settings, in a namespace.
func TestHardCase34(t *testing.T) {
	testkit.Live(t)
	h := newHost(t, "192.0.2.10/24", "2001:db8:1::10/64")
	h.link("eth1", "2001:db8::10/64")
	h.link("eth2.100", "203.0.113.10/24") // the name of a VLAN
	names := []string{"eth0", "eth1", "eth2.100"}
	for _, name := range names {
		h.sysctl("ipv4/conf/"+name+"/forwarding", "0")
		h.sysctl("ipv6/conf/"+name+"/forwarding", "0")
		h.sysctl("ipv6/conf/"+name+"/accept_ra", "1")
	}
	c := h.expect("192.0.2.5 2001:db8::5", "192.0.2.0/24 2001:db8::/64", "192.0.2.10/24 eth0, 2001:db8::10/64 eth1")
	forward := func() (changed []string, err error) {
		err = h.Do(func() (err error) {
			changed, err = Forward("/", c)
			return err
		})
		return changed, err
	}
	changed, err := forward()
	if want := []string{"ipv4 on eth0", "ipv6 on eth0", "ipv4 on eth1", "ipv6 on eth1"}; err != nil || !slices.Equal(changed, want) {
		t.Errorf("changed %q, %v; want %q", changed, err, want)
	}
	if changed, err := forward(); err != nil || len(changed) > 0 {
		t.Errorf("changed %q again, %v", changed, err)
	}
	for path, want := range map[string]string{
		"ipv4/conf/eth0/forwarding": "1", "ipv6/conf/eth0/forwarding": "1", "ipv6/conf/eth0/accept_ra": "2",
		"ipv4/conf/eth1/forwarding": "1", "ipv6/conf/eth1/forwarding": "1",
		"ipv4/conf/eth2.100/forwarding": "0", "ipv6/conf/eth2.100/forwarding": "0", "ipv6/conf/eth2.100/accept_ra": "1",
	} {
		err := h.Do(func() error {
			data, err := os.ReadFile("/proc/sys/net/" + path)
			testkit.Equal(testkit.In(t, path), want, strings.TrimSpace(string(data)))
			return err
		})
		testkit.Must(t, err)
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
