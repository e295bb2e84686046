package firstboot

import (
	"os"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testbed/authority"
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

// TestHint: on platforms with VIPs, the network in /etc/default/nodeip-configuration is an
// additional candidate, after that of the VIPs (hard case 47).
func TestHint(t *testing.T) {
	testkit.Variant(t)
	s := newSite(t)
	s.startDHCP(firstLease)
	s.startRegistry()
	n := newNode(s, installConfig, map[string]string{
		"/etc/default/nodeip-configuration": "NODEIP_HINT=198.51.100.1\n",
		// br-ex is for the interface with the address; here both are the same.
		"/etc/NetworkManager/system-connections/eth0.nmconnection": twoAddresses,
		"/etc/configure-ovs.sh": "#!/bin/sh\ntouch /run/nodeip-configuration/br-ex-up\n",
	})
	s.must(n.Boot())
	n.awaitKubelet(nodeAddr + " " + nodeAddr)
	n.await("/etc/resolv.conf", resolvConf(nodeAddr, "site.example", siteAddr))
}

// TestRegistered: a node that kubelet has run on, without its drop-in, keeps the address of its
// Node object (hard case 47).
func TestRegistered(t *testing.T) {
	testkit.Variant(t)
	s := newSite(t)
	s.startDHCP(firstLease)
	s.startRegistry()
	ca, err := authority.New("kubelet-serving")
	s.must(err)
	pair, err := ca.Serving("master-0", "198.51.100.20")
	s.must(err)
	n := newNode(s, installConfig, map[string]string{
		"/var/lib/kubelet/pki/kubelet-server-current.pem":          string(pair.Both()),
		"/etc/NetworkManager/system-connections/eth0.nmconnection": twoAddresses,
		"/etc/configure-ovs.sh":                                    "#!/bin/sh\ntouch /run/nodeip-configuration/br-ex-up\n",
	})
	s.must(n.Boot())
	n.awaitKubelet("198.51.100.20 198.51.100.20")
	n.await("/etc/resolv.conf", resolvConf("198.51.100.20", "site.example", siteAddr))
}

// twoAddresses is the link's connection with an additional address in another network.
const twoAddresses = `[connection]
id=eth0
type=ethernet
interface-name=eth0

[ipv4]
method=auto
address1=198.51.100.20/24

[ipv6]
method=auto
`

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
