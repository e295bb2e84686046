package daemon

import (
	"testing"

	"github.com/vipgen/vipgen/internal/testbed/authority"
	"github.com/vipgen/vipgen/internal/testbed/kubeapi"
	"github.com/vipgen/vipgen/internal/testkit"
)

// NodeKubeconfig writes a kubeconfig of a node into a directory, as kubelet has
// it, and returns its path. A link, pki/kubelet-client-current.pem, points to the
// file with the client certificate, and is moved to another when that rotates: call
// it again for that. server is the host and port that the kubeconfig names.
func NodeKubeconfig(t testing.TB, dir string, ca *authority.Authority, node, server string) string {
	t.Helper()
	path, err := kubeapi.WriteKubeconfig("/", dir, ca, node, server)
	testkit.Must(t, err)
	return path
}
