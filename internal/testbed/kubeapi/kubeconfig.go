package kubeapi

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/vipgen/vipgen/internal/testbed/authority"
)

// WriteKubeconfig writes a node's kubeconfig like kubelet, with the files that it refers to,
// and returns its path there. root is the root of the node's file system on this machine, dir a
// directory in it, such as /var/lib/kubelet, and server the host and port in the kubeconfig.
//
// The client certificate is read through a link, which is replaced when the certificate
// rotates: call it again to rotate. The kubeconfig remains the same file then, as with kubelet.
func WriteKubeconfig(root, dir string, ca *authority.Authority, node, server string) (string, error) {
	config := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: local
  cluster:
    server: https://%s
    certificate-authority-data: %s
users:
- name: kubelet
  user:
    client-certificate: %s
    client-key: %[3]s
contexts:
- name: kubelet
  context: {cluster: local, user: kubelet}
current-context: kubelet
`, server, base64.StdEncoding.EncodeToString(ca.CertPEM), filepath.Join(dir, "pki", current))
	pair, err := ca.Client(nodeUser+node, nodeGroup)
	if err != nil {
		return "", err
	}
	in := func(name string) string { return filepath.Join(root, dir, name) }
	for _, step := range []func() error{
		func() error { return os.MkdirAll(in("pki"), 0o755) },
		func() error { return rotate(root, dir, pair) },
		func() error { return keep(in("kubeconfig"), []byte(config)) },
	} {
		if err := step(); err != nil {
			return "", fmt.Errorf("writing the kubeconfig of %s: %w", node, err)
		}
	}
	return filepath.Join(dir, "kubeconfig"), nil
}

// ExpireKubeconfig replaces the client certificate that WriteKubeconfig wrote for the node with
// an expired one.
func ExpireKubeconfig(root, dir string, ca *authority.Authority, node string) error {
	pair, err := ca.Client(nodeUser+node, nodeGroup)
	if err == nil {
		pair, err = ca.Expired(pair)
	}
	if err == nil {
		err = rotate(root, dir, pair)
	}
	if err != nil {
		return fmt.Errorf("replacing the credentials of %s: %w", node, err)
	}
	return nil
}

// current is the link to the current client certificate.
const current = "kubelet-client-current.pem"

// rotate replaces the link to the client certificate, in one step.
func rotate(root, dir string, pair authority.KeyPair) error {
	pki := filepath.Join(root, dir, "pki")
	dated := fmt.Sprintf("kubelet-client-%d.pem", time.Now().UnixNano())
	fresh := filepath.Join(pki, current+".new")
	if err := os.WriteFile(filepath.Join(pki, dated), pair.Both(), 0o600); err != nil {
		return err
	}
	if err := os.Symlink(filepath.Join(dir, "pki", dated), fresh); err != nil {
		return err
	}
	return os.Rename(fresh, filepath.Join(pki, current))
}

// keep writes a file in one step, since a program may be reading it, and leaves it alone if its
// content is the same.
func keep(path string, data []byte) error {
	if before, err := os.ReadFile(path); err == nil && bytes.Equal(before, data) {
		return nil
	}
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
