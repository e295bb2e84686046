package firstboot

import (
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// resolvConf returns the expected /etc/resolv.conf, with the node's own address.
func resolvConf(addr, domains string, servers ...string) string {
	return "# Written by vipgen-agent resolv-conf from NetworkManager's resolv.conf.\nsearch demo.example.com " + domains +
		"\nnameserver " + addr + "\nnameserver " + strings.Join(servers, "\nnameserver ")
}

// TestFirstBoot: from an empty disk to kubelet's prerequisites, with the image pulled by its
// name (hard case 30).
func TestFirstBoot(t *testing.T) {
	s := newSite(t)
	s.startDHCP(firstLease)
	s.startRegistry()
	n := newNode(s, installConfig, nil)
	s.must(n.Boot())
	n.awaitKubelet(nodeAddr + " " + nodeAddr)
	n.await("/etc/resolv.conf", resolvConf(nodeAddr, "site.example", siteAddr))
	for path, want := range map[string]string{
		"/var/log/crio-started":                   nodeAddr,
		"/run/nodeip-configuration/primary-ip":    nodeAddr,
		"/run/nodeip-configuration/ipv4":          nodeAddr,
		"/proc/sys/net/ipv4/conf/eth0/forwarding": "1",
		"/proc/sys/kernel/hostname":               "master-0.site.example",
	} {
		testkit.Equal(testkit.In(t, path), want, n.read(path))
	}
	testkit.Equal(t, "", n.run("systemctl", "list-units", "--failed", "--plain", "--no-legend"))
	testkit.Equal(t, s.agent, n.run("podman", "images", "--digests", "--format", "{{.Repository}}@{{.Digest}}"))
}
