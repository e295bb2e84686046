package reference

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/lab/testbed/host"
	"github.com/vipgen/vipgen/templates"
)

// Install writes to a host what a node with those facts runs today, in place of
// what vipgen renders for it: pod manifests, configurations and check scripts.
// The node's role decides what it runs: a bootstrap host has no HAProxy, no check
// scripts, priority 70, and ends keepalived when its API server has ended; a
// compute node has the ingress VIPs only. Of images, those of keepalived and
// HAProxy are used; both must also hold bash, coreutils, diffutils, grep, curl,
// iproute2 and nftables.
//
// A second Install with other facts of the same role is what a change of VIPs or
// peers is today: no pod restarts, and the monitors apply it once they have found
// it often enough. Like today's, they look every 10 seconds
// (keepalived; 5 on the bootstrap) and every 6 (HAProxy), and three looks in a row
// must agree: baremetal-runtimecfg, cmd/dynkeepalived, cmd/monitor, pkg/monitor.
//
// The error says what is wrong with the facts, or why the node could hold no VIP;
// nothing was written then.
func Install(h *host.Host, c *v1alpha1.ClusterConfig, n *v1alpha1.Node, images v1alpha1.Images) error {
	list, err := render(c, n, images)
	if err != nil {
		return fmt.Errorf("today's configuration of %s: %w", n.Name, err)
	}
	for _, f := range list {
		if err := f.install(h); err != nil {
			return fmt.Errorf("today's configuration of %s: %w", n.Name, err)
		}
	}
	return nil
}

// file is one that Install writes.
type file struct {
	path string
	data []byte
	mode os.FileMode
	// unless is a file that keeps this one from being written: the monitor's copy,
	// from which it replaces this one later.
	unless string
}

func (f file) install(h *host.Host) error {
	if f.unless != "" {
		_, err := os.Stat(h.Path(f.unless))
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return h.WriteMode(f.path, f.data, f.mode)
}

// Directories that pods see as /config, and where keepalived finds its scripts.
const (
	keepalivedDir = v1alpha1.ResourceDir + "/keepalived"
	haproxyDir    = v1alpha1.ResourceDir + "/haproxy"
	checkDir      = "/etc/keepalived"
)

// Names that templates share.
const (
	// Namespace is where the mirror pods would be, as the manifests have it.
	Namespace = "openshift-reference-infra"
	// table is the nftables table of the redirect, of family inet.
	table = "reference"
	// redirectFile is there while the redirect is (baremetal-runtimecfg,
	// pkg/monitor: iptablesFilePath).
	redirectFile = "/var/run/keepalived/iptables-rule-exists"
)

// Names, as templates call them.
func (facts) Namespace() string      { return Namespace }
func (facts) Table() string          { return table }
func (facts) RedirectFile() string   { return redirectFile }
func (facts) KeepalivedDir() string  { return keepalivedDir }
func (facts) HAProxyDir() string     { return haproxyDir }
func (facts) CheckDir() string       { return checkDir }
func (facts) KeepalivedConf() string { return v1alpha1.KeepalivedConf }
func (facts) HAProxyConf() string    { return v1alpha1.HAProxyConf }

// RouterPods is where the API server lists the default ingress controller's
// routers on this node, which is as much as a kubelet may see of them.
func (f facts) RouterPods() string {
	query := url.Values{
		"labelSelector": {"ingresscontroller.operator.openshift.io/deployment-ingresscontroller=" + v1alpha1.DefaultIngress},
		"fieldSelector": {"spec.nodeName=" + f.Node},
	}
	at := net.JoinHostPort(f.APIVIPs[0].String(), strconv.Itoa(f.Ports.API))
	return "https://" + at + "/api/v1/namespaces/openshift-ingress/pods?" + query.Encode()
}

// redirect is one of a VIP.
type redirect struct {
	Family string // as nft calls it
	VIP    netip.Addr
	From   int
	To     netip.AddrPort
	Port   int
}

func (f facts) redirects() (out []redirect) {
	for _, vip := range f.APIVIPs {
		family := "ip"
		if vip.Is6() {
			family = "ip6"
		}
		to := netip.AddrPortFrom(vip, uint16(f.Ports.HAProxy))
		out = append(out, redirect{family, vip, f.Ports.API, to, f.Ports.HAProxy})
	}
	return out
}

//go:embed *.tmpl
var sources embed.FS

var parsed = templates.ParseAll(sources)
