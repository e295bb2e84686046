package daemon

import (
	"net/netip"
	"testing"

	"github.com/vipgen/vipgen/lab/netns"
)

// ControlPlane is the API of a cluster: API servers on several nodes, and what
// they have in common.
type ControlPlane struct {
	// CA signs everybody's certificates.
	CA *Authority

	t      testing.TB
	domain string
	etcd   string
}

// NewControlPlane starts etcd on a node, at one of its addresses. domain is the
// cluster's.
func NewControlPlane(t testing.TB, domain string, node *netns.Node, addr netip.Addr) *ControlPlane {
	t.Helper()
	return &ControlPlane{CA: NewAuthority(t, "test-signer"), t: t, domain: domain, etcd: startEtcd(t, node, addr.String())}
}

// APIServer prepares the API server of a node, for Launch: at port 6443 of all
// its addresses, of which one is given. The certificate that it serves without
// SNI has the node's name as its subject, and is valid for the API's names and
// for the addresses given.
func (c *ControlPlane) APIServer(node *netns.Node, addr netip.Addr, valid ...netip.Addr) *APIServer {
	c.t.Helper()
	s := &APIServer{
		CA:           c.CA,
		Addr:         netip.AddrPortFrom(addr, 6443),
		InternalName: "api-int." + c.domain,
		t:            c.t,
		etcd:         c.etcd,
		node:         node,
		names:        append([]string{node.Name, "api." + c.domain, "api-int." + c.domain, addr.String()}, serviceNames()...),
	}
	for _, a := range valid {
		s.names = append(s.names, a.String())
	}
	s.prepare()
	return s
}
