package nodeip

import (
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testbed/authority"
	"github.com/vipgen/vipgen/internal/testkit"
)

func addresses(words string) []netip.Addr { return testkit.Addrs(strings.Fields(words)...) }

func TestPreference(t *testing.T) {
	const three = `
		link eth0
		addr 192.0.2.10/24
		addr 2001:db8::10/64
		route default via 192.0.2.1
		link eth1
		addr 198.51.100.10/24
		addr 198.51.100.11/24
		link eth2
		addr 203.0.113.10/24
		addr 2001:db8:3::10/64`
	for _, tt := range []struct{ name, platform, network, hints, kept, vips, want string }{
		{"none", "baremetal", three, "", "", "192.0.2.5", "192.0.2.10/24 eth0"},
		{"a hint after the VIPs", "baremetal", three, "198.51.100.1", "", "192.0.2.5", "192.0.2.10/24 eth0"},
		{"a hint where no VIP is near", "vsphere", three, "198.51.100.1", "", "10.0.0.5", "198.51.100.10/24 eth1"},
		{"a hint before the VIPs that the operator does not know", "none", three, "198.51.100.1", "", "192.0.2.5", "198.51.100.10/24 eth1"},
		{"of each family", "none", three, "198.51.100.1 2001:db8:3::1", "", "192.0.2.5 2001:db8::5", "198.51.100.10/24 eth1, 2001:db8:3::10/64 eth2"},
		{"for one family, the other as always", "none", three, "2001:db8:3::1", "", "192.0.2.5 2001:db8::5", "192.0.2.10/24 eth0, 2001:db8:3::10/64 eth2"},
		{"in no network of the node", "none", three, "10.9.9.9", "", "192.0.2.5", "192.0.2.10/24 eth0"},
		{"the second hint", "none", three, "10.9.9.9 203.0.113.1", "", "192.0.2.5", "203.0.113.10/24 eth2"},
		{"chosen before", "baremetal", three, "", "203.0.113.10", "192.0.2.5", "203.0.113.10/24 eth2"},
		{"chosen before, gone now", "baremetal", three, "", "203.0.113.99", "192.0.2.5", "192.0.2.10/24 eth0"},
		{"chosen before, of one family", "baremetal", three, "", "2001:db8:3::10", "192.0.2.5 2001:db8::5", "192.0.2.10/24 eth0, 2001:db8:3::10/64 eth2"},
		{"chosen before, a VIP now", "baremetal", three, "", "203.0.113.10", "192.0.2.5 203.0.113.10", "192.0.2.10/24 eth0"},
		{"chosen before, of a family that the cluster does not use", "baremetal", three, "", "2001:db8:3::10", "192.0.2.5", "192.0.2.10/24 eth0"},
		{"chosen before, and a hint", "none", three, "198.51.100.1", "203.0.113.10", "192.0.2.5", "203.0.113.10/24 eth2"},
		{"chosen before, on an interface that is down", "baremetal", "link eth0 down\naddr 203.0.113.10/24\nlink eth1\naddr 192.0.2.10/24", "", "203.0.113.10", "192.0.2.5", "203.0.113.10/24 eth0"},
		{"chosen before, tentative: waited for", "baremetal", "link eth0\naddr 2001:db8::10/64\nlink eth1\naddr 2001:db8:1::10/64 tentative", "", "2001:db8:1::10", "2001:db8::5", "no IPv6"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := cluster(tt.vips, "")
			spec.Platform = tt.platform
			c := Choose(network(t, tt.network), spec, Preference{Hints: addresses(tt.hints), Kept: addresses(tt.kept)})
			testkit.Equal(t, tt.want, picked(c))
			testkit.Equal(t, false, c.RemoteWorker) // whatever is chosen: its VIPs bind elsewhere
		})
	}
}

// Without kubelet's drop-in, an address that the Node has wins over VIPs and hints.
func TestHardCase47Registered(t *testing.T) {
	const two = `
		link eth0
		addr 192.0.2.10/24
		addr 2001:db8::10/64
		route default via 192.0.2.1
		link eth1
		addr 198.51.100.10/24
		addr 198.51.100.11/24
		addr 2001:db8:1::10/64`
	for _, tt := range []struct{ name, platform, hints, kept, registered, vips, want string }{
		{"of one family", "external", "", "", "198.51.100.11", "192.0.2.5", "198.51.100.11/24 eth1"},
		{"the drop-in first", "external", "", "192.0.2.10", "198.51.100.11", "192.0.2.5", "192.0.2.10/24 eth0"},
		{"the drop-in has another family", "external", "", "192.0.2.10", "192.0.2.10 2001:db8:1::10", "192.0.2.5 2001:db8::5", "192.0.2.10/24 eth0, 2001:db8:1::10/64 eth1"},
		{"and a hint", "external", "192.0.2.1", "", "198.51.100.11", "192.0.2.5", "198.51.100.11/24 eth1"},
		{"of several, the one in a VIP's network", "baremetal", "", "", "198.51.100.11 192.0.2.10", "192.0.2.5", "192.0.2.10/24 eth0"},
		{"of several, a hint's", "none", "198.51.100.1", "", "192.0.2.10 198.51.100.11", "192.0.2.5", "198.51.100.11/24 eth1"},
		{"of several on no default route, the first", "external", "", "", "198.51.100.11 198.51.100.10", "10.0.0.5", "198.51.100.11/24 eth1"},
		{"the other family as always", "external", "", "", "198.51.100.11", "192.0.2.5 2001:db8::5", "198.51.100.11/24 eth1, 2001:db8::10/64 eth0"},
		{"gone now", "external", "", "", "203.0.113.10", "192.0.2.5", "192.0.2.10/24 eth0"},
		{"a VIP", "external", "", "", "198.51.100.11", "198.51.100.11 192.0.2.5", "198.51.100.10/24 eth1"},
	} {
		spec := cluster(tt.vips, "")
		spec.Platform = tt.platform
		c := Choose(network(t, two), spec, Preference{Hints: addresses(tt.hints), Kept: addresses(tt.kept), Registered: addresses(tt.registered)})
		testkit.Equal(testkit.In(t, tt.name), tt.want, picked(c))
	}
}

func TestReadRegistered(t *testing.T) {
	ca, err := authority.New("kubelet-serving")
	testkit.Must(t, err)
	pair, err := ca.Serving("worker-0", "192.0.2.10", "2001:db8::10")
	testkit.Must(t, err)
	signed := string(pair.Cert)
	for _, tt := range []struct {
		name, file, want string
		fails            bool
	}{
		{"first boot", "", "", false},
		{"kubelet's", signed, "192.0.2.10 2001:db8::10", false},
		{"cut off", signed[:100], "", true},
		{"no certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "", true},
	} {
		root := t.TempDir()
		testkit.WriteFile(t, filepath.Join(root, servingCertificate), []byte(tt.file))
		if got, err := ReadRegistered(root); (err != nil) != tt.fails || !slices.Equal(got, addresses(tt.want)) {
			t.Errorf("%s: %v, %v", tt.name, got, err)
		}
	}
	if got, err := ReadRegistered(t.TempDir()); err != nil || got != nil {
		t.Errorf("without a file: %v, %v", got, err)
	}
}

func TestReadHints(t *testing.T) {
	for _, tt := range []struct{ hint, older, want, fails string }{
		{"", "", "", ""},
		{"192.0.2.1", "", "192.0.2.1", ""},
		{"", "192.0.2.1", "192.0.2.1", ""},
		{"192.0.2.1", "198.51.100.1", "192.0.2.1", ""},
		{" 192.0.2.1  2001:db8::1 ", "", "192.0.2.1 2001:db8::1", ""},
		{"  ", "192.0.2.1", "192.0.2.1", ""},
		{"192.0.2.0/24", "", "", `NODEIP_HINT: "192.0.2.0/24"`},
		{"192.0.2.1", "worker-0", "192.0.2.1", ""},
		{"", "worker-0", "", `KUBELET_NODEIP_HINT: "worker-0"`},
	} {
		got, err := ReadHints(func(name string) string {
			return map[string]string{"NODEIP_HINT": tt.hint, "KUBELET_NODEIP_HINT": tt.older}[name]
		})
		if !slices.Equal(got, addresses(tt.want)) || (err == nil) != (tt.fails == "") || err != nil && !strings.HasPrefix(err.Error(), tt.fails) {
			t.Errorf("%q, %q: %v, %v", tt.hint, tt.older, got, err)
		}
	}
}

func TestReadKept(t *testing.T) {
	for in, want := range map[string]string{
		"-": "", // no file
		"":  "",
		"[Service]\nEnvironment=\"KUBELET_NODE_IP=192.0.2.10\" \"KUBELET_NODE_IPS=192.0.2.10,2001:db8::10\"\n": "192.0.2.10 2001:db8::10",
		"[Service]\nEnvironment=\"KUBELET_NODE_IP=::\"\n":                                                      "::",
		"[Service]\nEnvironment=\"KUBELET_NODE_IPS=what,\"\n\x00":                                              "",
	} {
		root := t.TempDir()
		if in != "-" {
			testkit.WriteFile(t, filepath.Join(root, kubeletDropIn), []byte(in))
		}
		if got, err := ReadKept(root); err != nil || !slices.Equal(got, addresses(want)) {
			t.Errorf("%q: %v, %v", in, got, err)
		}
	}
}
