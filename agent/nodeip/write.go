package nodeip

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/fileio"
)

// remoteWorkerFile exists on a remote worker (hard case 9).
const remoteWorkerFile = v1alpha1.NodeIPDir + "/remote-worker"

// kubeletDropIn passes the node's addresses to kubelet. It survives reboots; the
// operator's own unit writes the same file.
const kubeletDropIn = "/etc/systemd/system/kubelet.service.d/20-nodenet.conf"

// errNoAddress is returned by Write for a choice without an address.
var errNoAddress = errors.New("no address was chosen")

// Write passes the choice to kubelet and CRI-O (systemd drop-ins, effective after a
// daemon-reload), and to readers of /run/nodeip-configuration, under root. It returns the
// changed paths without root. primary-ip is written last: when it exists, so do the other
// files.
func Write(root string, c Choice) (changed []string, err error) {
	ips := c.IPs()
	if len(ips) == 0 {
		return nil, errNoAddress
	}
	for _, f := range files(c, ips) {
		did, err := f.write(root)
		if err != nil {
			return changed, err
		}
		if did {
			changed = append(changed, f.path)
		}
	}
	return changed, nil
}

// file is a file that Write writes, or removes if data is empty.
type file struct{ path, data string }

func files(c Choice, ips []netip.Addr) []file {
	words := make([]string, len(ips))
	byFamily := map[Family]string{}
	for i, ip := range ips {
		words[i] = ip.String()
		byFamily[familyOf(ip)] = words[i]
	}
	kubelet := fmt.Sprintf("[Service]\nEnvironment=\"KUBELET_NODE_IP=%s\" \"KUBELET_NODE_IPS=%s\"\n", words[0], strings.Join(words, ","))
	remote := ""
	if c.RemoteWorker {
		// OpenShift's kubelet unit takes labels from its environment.
		kubelet += fmt.Sprintf("Environment=\"CUSTOM_KUBELET_LABELS=%s\"\n", v1alpha1.RemoteWorkerLabel)
		remote = "This node is in no network with a VIP: it runs no keepalived.\n"
	}
	crio := fmt.Sprintf("[Service]\nEnvironment=\"CONTAINER_STREAM_ADDRESS=%s\"\n", words[0])
	return []file{
		{kubeletDropIn, kubelet},
		{"/etc/systemd/system/crio.service.d/20-nodenet.conf", crio},
		{remoteWorkerFile, remote},
		// No newline: scripts use the content in command lines.
		{v1alpha1.NodeIPDir + "/ipv4", byFamily[ipv4]},
		{v1alpha1.NodeIPDir + "/ipv6", byFamily[ipv6]},
		{v1alpha1.NodeIPDir + "/primary-ip", words[0]},
	}
}

func (f file) write(root string) (changed bool, err error) {
	path := filepath.Join(root, f.path)
	if f.data == "" {
		return fileio.Remove(path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return false, err
	}
	return fileio.Write(path, []byte(f.data), 0o644)
}
