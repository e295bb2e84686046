package firstboot

import (
	"os"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// TestNetworkChanges: changes of the network's name servers and domains are followed, and an
// address that changes while the node is off, with the registry gone for good: the image is on
// the node.
func TestNetworkChanges(t *testing.T) {
	s := newSite(t)
	s.startDHCP(firstLease)
	s.startRegistry()
	n := newNode(s, installConfig, nil)
	s.must(n.Boot())
	n.awaitKubelet(nodeAddr + " " + nodeAddr)
	s.stopRegistry()

	changed := lease{addr: nodeAddr, servers: siteAddr + ",192.168.111.9,192.168.111.10", domains: "new.example,other.example"}
	s.startDHCP(changed)
	n.run("nmcli", "--wait", "60", "connection", "up", "br-ex")
	// The last one is the domain of the node's name, which NetworkManager adds.
	n.await("/etc/resolv.conf", resolvConf(nodeAddr, "new.example other.example site.example", siteAddr, "192.168.111.9"))

	n.off()
	s.startDHCP(lease{addr: "192.168.111.21", servers: siteAddr, domains: "site.example"})
	s.must(n.PowerOn())
	n.awaitKubelet(nodeAddr+" "+nodeAddr, "192.168.111.21 192.168.111.21")
	n.await("/etc/resolv.conf", resolvConf("192.168.111.21", "site.example", siteAddr))
	n.await("/proc/sys/kernel/hostname", "master-0.site.example")
}

// TestDualStack: kubelet waits for both families, IPv4 first as in the install-config.
func TestDualStack(t *testing.T) {
	s := newSite(t)
	l := firstLease
	l.ipv6 = true
	s.startDHCP(l)
	s.startRegistry()
	n := newNode(s, dualStack, nil)
	s.must(n.Boot())
	n.awaitKubelet(nodeAddr + " " + nodeAddr + ",fd2e:6f44:5dd8::20")
	n.await("/run/nodeip-configuration/ipv6", "fd2e:6f44:5dd8::20")
	n.await("/etc/resolv.conf", resolvConf(nodeAddr, "site.example", siteAddr))
}

// TestResolved: where systemd-resolved manages /etc/resolv.conf, it gets the node's own server,
// and the other settings stay with the link.
func TestResolved(t *testing.T) {
	s := newSite(t)
	s.startDHCP(firstLease)
	s.startRegistry()
	n := newNode(s, installConfig, map[string]string{
		"/etc/systemd/system-preset/10-resolved.preset": "enable systemd-resolved.service\n",
	})
	s.must(os.Symlink("../run/systemd/resolve/stub-resolv.conf", n.Path("/etc/resolv.conf")))
	s.must(n.Boot())
	n.awaitKubelet(nodeAddr + " " + nodeAddr)
	n.await("/etc/systemd/resolved.conf.d/60-vipgen.conf", "# Written by vipgen-agent resolv-conf.\n[Resolve]\nDNS="+nodeAddr+"\nDomains=demo.example.com site.example")
	testkit.Equal(t, "../run/systemd/resolve/stub-resolv.conf", n.run("readlink", "/etc/resolv.conf"))
	testkit.Await(t, "systemd-resolved to know the server", func() bool {
		return strings.Contains(n.run("resolvectl", "dns"), "Global: "+nodeAddr)
	}, func() string { return n.run("resolvectl", "dns") })
}
