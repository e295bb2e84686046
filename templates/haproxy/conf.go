// Package haproxy renders haproxy.cfg of a node from ClusterConfig and Node.
package haproxy

import (
	_ "embed"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/templates"
)

// Template is the node template, as it is shipped.
//
//go:embed haproxy.cfg.tmpl
var Template string

// MaxConn is the maximum of concurrent connections of the control plane's HAProxy, more
// wait: as many as the operator's since OpenShift 4.18 (machine-config-operator,
// haproxy-haproxy.yaml). HAProxy's limit of open files follows from it, two for each.
// Memory does not: connections allocate it when they open.
const MaxConn = 40_000

// maxConnOwn is MaxConn for programs of one node, which have a few dozen connections.
const maxConnOwn = 2000

// Conf is the data of the template.
type Conf struct {
	Cluster string
	Node    string
	// ControlPlane reports that HAProxy serves all clients, in front of the API servers.
	// Otherwise it serves the node's own programs on loopback, in front of the control
	// plane's HAProxy.
	ControlPlane bool
	// MaxConn is the maximum of concurrent connections.
	MaxConn int
	// IPv6 reports whether to listen on IPv6 too: binding fails where the kernel has it
	// disabled (hard case 25).
	IPv6 bool
	// Port is the front end to which clients are redirected; ReadyPort answers on
	// loopback whether this HAProxy can serve.
	Port      int
	ReadyPort int
	// KeepAlive reports that HAProxy supports the start of keep-alive; otherwise the
	// kernel decides, which waits for two hours (hard case 29).
	KeepAlive bool
	// OneThread reports that HAProxy can serve a socket by one thread, which saves a
	// third of the CPU time of checks with many threads.
	OneThread bool
	// Socket is the only administration interface of HAProxy.
	Socket   string
	Backends []Backend
}

// Backend is an API server, or the HAProxy of a control-plane node.
type Backend struct {
	Name string
	// Address is "host:port", the host in brackets for IPv6.
	Address string
}

// New returns the configuration of a node: every known control-plane node is a backend,
// this one included, by its address of the primary family.
func New(c *v1alpha1.ClusterConfig, n *v1alpha1.Node) *Conf {
	h := &Conf{
		Cluster:      c.Metadata.Name,
		Node:         n.Name,
		ControlPlane: v1alpha1.ControlPlaneRole(n.Role),
		MaxConn:      maxConnOwn,
		IPv6:         !n.NoIPv6,
		Port:         c.Spec.Ports.HAProxy,
		ReadyPort:    c.Spec.Ports.HAProxyReady,
		KeepAlive:    n.HAProxyAtLeast(2, 3),
		OneThread:    n.HAProxyAtLeast(2, 6),
		Socket:       v1alpha1.HAProxySocket,
	}
	if h.ControlPlane {
		h.MaxConn = MaxConn
	}
	for _, g := range c.Spec.Groups {
		if g.Role == v1alpha1.GroupAPI && len(g.VIPs) > 0 {
			h.Backends = backends(c, n, g.VIPs[0])
			break
		}
	}
	return h
}

// Render executes a node template, the shipped one or the one on the node.
func Render(text string, c *v1alpha1.ClusterConfig, n *v1alpha1.Node) ([]byte, error) {
	return templates.Execute("haproxy.cfg.tmpl", text, New(c, n))
}

// backends returns the backends by the addresses in the VIP's network, which adverts use,
// too, named after their nodes.
func backends(c *v1alpha1.ClusterConfig, n *v1alpha1.Node, vip netip.Addr) []Backend {
	bind, ok := n.Bind(vip)
	if !ok {
		return nil
	}
	port := strconv.Itoa(c.Spec.Ports.API)
	if !v1alpha1.ControlPlaneRole(n.Role) {
		port = strconv.Itoa(c.Spec.Ports.HAProxy)
	}
	var out []Backend
	add := func(name string, a netip.Addr) {
		out = append(out, Backend{Name: name, Address: net.JoinHostPort(a.String(), port)})
	}
	if n.Role == v1alpha1.RoleMaster {
		add(n.Name, bind.Source.Addr())
	}
	for _, p := range n.Peers {
		if p.Role != v1alpha1.RoleMaster || p.Name == n.Name {
			continue
		}
		if a, ok := p.AddressFor(bind); ok {
			add(p.Name, a)
		}
	}
	slices.SortFunc(out, func(a, b Backend) int { return strings.Compare(a.Name, b.Name) })
	return out
}
