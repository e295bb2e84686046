package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// NodeKubeconfig writes a kubeconfig of a node into a directory, as kubelet has
// it, and returns its path. A link beside it points to the file with the client
// certificate, and is moved to another when that rotates: call it again for
// that. server is the host and port that the kubeconfig names.
func NodeKubeconfig(t testing.TB, dir string, ca *Authority, node, server string) string {
	t.Helper()
	current := filepath.Join(dir, "kubelet-client-current.pem")
	dated := filepath.Join(dir, fmt.Sprintf("kubelet-client-%d.pem", time.Now().UnixNano()))
	config := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: local
  cluster:
    server: https://%s
    certificate-authority: ca.crt
users:
- name: kubelet
  user:
    client-certificate: %s
    client-key: %[2]s
contexts:
- name: kubelet
  context: {cluster: local, user: kubelet}
current-context: kubelet
`, server, current)
	path := filepath.Join(dir, "kubeconfig")
	pair := ca.Client("system:node:"+node, "system:nodes")
	link := current + ".new"
	for _, step := range []func() error{
		func() error { return os.WriteFile(filepath.Join(dir, "ca.crt"), ca.CertPEM, 0o600) },
		func() error { return os.WriteFile(dated, pair.Both(), 0o600) },
		func() error { return os.Symlink(dated, link) },
		func() error { return os.Rename(link, current) },
		func() error { return os.WriteFile(path, []byte(config), 0o600) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	return path
}
