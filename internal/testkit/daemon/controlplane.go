package daemon

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/kubeapi"
	"github.com/vipgen/vipgen/lab/netns"
)

// controlPlane is the API of a cluster: real API servers on several nodes, and
// what they have in common.
type controlPlane struct {
	// CA signs everybody's certificates.
	CA *Authority

	t      testing.TB
	domain string
	port   uint16
	plane  kubeapi.Plane
}

// newControlPlane starts etcd; the directory and programs of c are filled in.
func newControlPlane(t testing.TB, c kubeapi.RealConfig) *controlPlane {
	t.Helper()
	c.Dir, c.Etcd, c.APIServer = t.TempDir(), testkit.Tool(t, "etcd"), testkit.Tool(t, "kube-apiserver")
	plane, err := kubeapi.NewReal(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Close(); err != nil {
			t.Error(err)
		}
		showLogs(t, c.Dir)
	})
	return &controlPlane{CA: &Authority{plane.CA(), t}, t: t, domain: c.Domain, port: c.Port, plane: plane}
}

// showLogs shows the end of what the programs printed if the test failed.
func showLogs(t testing.TB, dir string) {
	t.Helper()
	for _, pattern := range []string{"*.log", "*/*.log"} {
		logs, _ := filepath.Glob(filepath.Join(dir, pattern)) // the patterns are good
		for _, log := range logs {
			data, err := os.ReadFile(log)
			if err != nil {
				t.Error(err)
			}
			name, _ := filepath.Rel(dir, log)
			show(t, name, string(data))
		}
	}
}

// apiServer prepares the API server of a node, for Launch, as kubeapi.Plane does.
func (c *controlPlane) apiServer(node *netns.Node, addr netip.Addr, valid ...netip.Addr) *APIServer {
	c.t.Helper()
	server, err := c.plane.Server(node, addr, valid...)
	if err != nil {
		c.t.Fatal(err)
	}
	return &APIServer{
		CA:           c.CA,
		Addr:         netip.AddrPortFrom(addr, c.port),
		InternalName: "api-int." + c.domain,
		control:      c,
		server:       server,
	}
}
