package nodeip

import (
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/testkit"
)

func chosen(addresses ...string) Choice {
	var c Choice
	for _, a := range addresses {
		p := netip.MustParsePrefix(a)
		c.Addresses = append(c.Addresses, Chosen{Family: familyOf(p.Addr()), Address: p})
	}
	return c
}

// tree reads all files under a directory.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		out[path[len(root):]] = string(data)
		return err
	})
	testkit.Must(t, err)
	return out
}

func TestWrite(t *testing.T) {
	root := t.TempDir()
	remote := chosen("192.0.2.10/24")
	remote.RemoteWorker = true
	const (
		kubelet = "/etc/systemd/system/kubelet.service.d/20-nodenet.conf"
		crio    = "/etc/systemd/system/crio.service.d/20-nodenet.conf"
		run     = "/run/nodeip-configuration/"
	)
	steps := []struct {
		name    string
		choice  Choice
		changed []string
		want    map[string]string
	}{
		{"dual-stack", chosen("192.0.2.10/24", "2001:db8::10/64"), []string{kubelet, crio, run + "ipv4", run + "ipv6", run + "primary-ip"}, map[string]string{
			kubelet:            "[Service]\nEnvironment=\"KUBELET_NODE_IP=192.0.2.10\" \"KUBELET_NODE_IPS=192.0.2.10,2001:db8::10\"\n",
			crio:               "[Service]\nEnvironment=\"CONTAINER_STREAM_ADDRESS=192.0.2.10\"\n",
			run + "ipv4":       "192.0.2.10",
			run + "ipv6":       "2001:db8::10",
			run + "primary-ip": "192.0.2.10",
		}},
		{"again", chosen("192.0.2.10/24", "2001:db8::10/64"), nil, nil},
		{"IPv6 first", chosen("2001:db8::10/64", "192.0.2.10/24"), []string{kubelet, crio, run + "primary-ip"}, map[string]string{
			kubelet:            "[Service]\nEnvironment=\"KUBELET_NODE_IP=2001:db8::10\" \"KUBELET_NODE_IPS=2001:db8::10,192.0.2.10\"\n",
			crio:               "[Service]\nEnvironment=\"CONTAINER_STREAM_ADDRESS=2001:db8::10\"\n",
			run + "ipv4":       "192.0.2.10",
			run + "ipv6":       "2001:db8::10",
			run + "primary-ip": "2001:db8::10",
		}},
		{"remote worker of one family", remote, []string{kubelet, crio, run + "remote-worker", run + "ipv6", run + "primary-ip"}, map[string]string{
			kubelet: "[Service]\nEnvironment=\"KUBELET_NODE_IP=192.0.2.10\" \"KUBELET_NODE_IPS=192.0.2.10\"\n" +
				"Environment=\"CUSTOM_KUBELET_LABELS=node.openshift.io/remote-worker\"\n",
			crio:                  "[Service]\nEnvironment=\"CONTAINER_STREAM_ADDRESS=192.0.2.10\"\n",
			run + "ipv4":          "192.0.2.10",
			run + "primary-ip":    "192.0.2.10",
			run + "remote-worker": "This node is in no network with a VIP: it runs no keepalived.\n",
		}},
		{"no longer remote", chosen("192.0.2.10/24"), []string{kubelet, run + "remote-worker"}, map[string]string{
			kubelet:            "[Service]\nEnvironment=\"KUBELET_NODE_IP=192.0.2.10\" \"KUBELET_NODE_IPS=192.0.2.10\"\n",
			crio:               "[Service]\nEnvironment=\"CONTAINER_STREAM_ADDRESS=192.0.2.10\"\n",
			run + "ipv4":       "192.0.2.10",
			run + "primary-ip": "192.0.2.10",
		}},
	}
	var before map[string]string
	for _, s := range steps {
		if s.want == nil {
			s.want = before
		}
		changed, err := Write(root, s.choice)
		testkit.Must(testkit.In(t, s.name), err)
		testkit.Equal(testkit.In(t, s.name), s.changed, changed)
		before = tree(t, root)
		testkit.Equal(testkit.In(t, s.name), s.want, before)
	}
}

func TestWriteWithoutAnAddress(t *testing.T) {
	root := t.TempDir()
	for _, c := range []Choice{{}, {Addresses: []Chosen{{Family: ipv4}}}} {
		_, err := Write(root, c)
		testkit.Is(t, err, errNoAddress)
	}
	testkit.Empty(t, tree(t, root))
}

func TestWriteToAReadOnlyDisk(t *testing.T) {
	root := testkit.SmallDisk(t)
	_, err := Write(root, chosen("192.0.2.10/24"))
	testkit.Must(t, err)
	testkit.LockDisk(t, root)
	before := tree(t, root)
	if changed, err := Write(root, chosen("192.0.2.10/24")); err != nil || changed != nil {
		t.Errorf("the same again: changed %v, error %v", changed, err)
	}
	_, err = Write(root, chosen("192.0.2.11/24"))
	testkit.Is(t, err, unix.EROFS)
	testkit.Equal(t, before, tree(t, root))
}

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

// Of the kernel's routes, unicast ones through links that work are read, one for each next hop.
func TestRoute(t *testing.T) {
	_, network, err := net.ParseCIDR("198.51.100.0/24")
	testkit.Must(t, err)
	gateway, via := net.ParseIP("192.0.2.1"), net.ParseIP("fe80::1")
	any4, any6, to := netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0"), netip.MustParsePrefix("198.51.100.0/24")
	address4, address6 := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("fe80::1")
	for name, tt := range map[string]struct {
		in   netlink.Route
		want []Route
	}{
		"no unicast":    {netlink.Route{Type: unix.RTN_BLACKHOLE, Dst: network}, nil},
		"a network":     {netlink.Route{Type: unix.RTN_UNICAST, Dst: network, LinkIndex: 2, Priority: 100}, []Route{{Link: 2, Destination: to, Metric: 100}}},
		"IPv4 default":  {netlink.Route{Type: unix.RTN_UNICAST, Family: netlink.FAMILY_V4, LinkIndex: 2, Gw: gateway}, []Route{{Link: 2, Destination: any4, Gateway: address4}}},
		"IPv6 default":  {netlink.Route{Type: unix.RTN_UNICAST, Family: netlink.FAMILY_V6, LinkIndex: 2, Gw: via}, []Route{{Link: 2, Destination: any6, Gateway: address6}}},
		"advertised":    {netlink.Route{Type: unix.RTN_UNICAST, Dst: network, LinkIndex: 2, Protocol: unix.RTPROT_RA}, []Route{{Link: 2, Destination: to, Advertised: true}}},
		"kernel's IPv4": {netlink.Route{Type: unix.RTN_UNICAST, Dst: network, LinkIndex: 2, Protocol: unix.RTPROT_KERNEL}, []Route{{Link: 2, Destination: to}}},
		"two of three hops": {netlink.Route{Type: unix.RTN_UNICAST, Dst: network, MultiPath: []*netlink.NexthopInfo{
			{LinkIndex: 2, Gw: gateway, Flags: unix.RTNH_F_DEAD}, {LinkIndex: 3, Gw: gateway}, {LinkIndex: 4, Via: &netlink.Via{AddrFamily: netlink.FAMILY_V6, Addr: via}},
		}}, []Route{{Link: 3, Destination: to, Gateway: address4}, {Link: 4, Destination: to, Gateway: address6}}},
	} {
		testkit.Equal(testkit.In(t, name), tt.want, route(tt.in))
	}
}
