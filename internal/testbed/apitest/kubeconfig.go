package apitest

import (
	"testing"

	"github.com/vipgen/vipgen/internal/testbed/authority"
	"github.com/vipgen/vipgen/internal/testbed/kubeapi"
	"github.com/vipgen/vipgen/internal/testkit"
)

// NodeKubeconfig writes a node's kubeconfig into a directory, like kubelet, and returns its
// path. A link, pki/kubelet-client-current.pem, points to the file with the client certificate,
// and is replaced when that rotates: call it again to rotate. server is the host and port in
// the kubeconfig.
func NodeKubeconfig(t testing.TB, dir string, ca *authority.Authority, node, server string) string {
	t.Helper()
	path, err := kubeapi.WriteKubeconfig("/", dir, ca, node, server)
	testkit.Must(t, err)
	return path
}
