package daemon

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/lab/kubeapi"
	"github.com/vipgen/vipgen/lab/netns"
)

// ControlPlane is the API of a cluster: real API servers on several nodes, and
// what they have in common.
type ControlPlane struct {
	// CA signs everybody's certificates.
	CA *Authority

	t      testing.TB
	domain string
	port   uint16
	plane  kubeapi.Plane
}

// NewControlPlane starts etcd on a node, at one of its addresses. domain is the
// cluster's.
func NewControlPlane(t testing.TB, domain string, node *netns.Node, addr netip.Addr) *ControlPlane {
	t.Helper()
	return newControlPlane(t, kubeapi.RealConfig{Domain: domain, Node: node, Addr: addr, Port: uint16(v1alpha1.DefaultPorts.API)})
}

func newControlPlane(t testing.TB, c kubeapi.RealConfig) *ControlPlane {
	t.Helper()
	c.Dir, c.Etcd, c.APIServer = t.TempDir(), tool(t, "etcd"), tool(t, "kube-apiserver")
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
	return &ControlPlane{CA: &Authority{plane.CA(), t}, t: t, domain: c.Domain, port: c.Port, plane: plane}
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

// APIServer prepares the API server of a node, for Launch, as kubeapi.Plane does.
func (c *ControlPlane) APIServer(node *netns.Node, addr netip.Addr, valid ...netip.Addr) *APIServer {
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
