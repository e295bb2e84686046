package nodeip

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
	"golang.org/x/sys/unix"
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
		if _, err := Write(root, c); !errors.Is(err, errNoAddress) {
			t.Errorf("error %v, want %v", err, errNoAddress)
		}
	}
	testkit.Empty(t, tree(t, root))
}

func TestWriteToAReadOnlyDisk(t *testing.T) {
	root := testkit.SmallDisk(t)
	if _, err := Write(root, chosen("192.0.2.10/24")); err != nil {
		t.Fatal(err)
	}
	testkit.LockDisk(t, root)
	before := tree(t, root)
	if changed, err := Write(root, chosen("192.0.2.10/24")); err != nil || changed != nil {
		t.Errorf("the same again: changed %v, error %v", changed, err)
	}
	if _, err := Write(root, chosen("192.0.2.11/24")); !errors.Is(err, unix.EROFS) {
		t.Errorf("error %v, want %v", err, unix.EROFS)
	}
	testkit.Equal(t, before, tree(t, root))
}
