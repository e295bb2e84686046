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

// Install writes to a host what a node with those facts runs today, in place of vipgen's files: pod
// manifests, configurations and check scripts. The content depends on the node's role: a bootstrap
// host has no HAProxy, no check scripts, priority 70, and ends keepalived when its API server has
// ended; a compute node has only the ingress VIPs. Of images, it uses those of keepalived and
// HAProxy; both must also contain bash, coreutils, diffutils, grep, curl, iproute2 and nftables.
//
// A second Install with other facts of the same role corresponds to a change of VIPs or peers
// today: no pod restarts, and the monitors apply the change after several polls. Like the
// originals, they poll every 10 seconds (keepalived; 5 on the bootstrap) and every 6 (HAProxy), and
// three polls in a row must agree: baremetal-runtimecfg, cmd/dynkeepalived, cmd/monitor,
// pkg/monitor.
//
// The error describes invalid facts, or the reason why the node could hold no VIP; nothing was
// written then.
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

// file is a file that Install writes.
type file struct {
	path string
	data []byte
	mode os.FileMode
	// unless is a file that prevents writing this one if it exists: the monitor's copy, from which
	// the monitor replaces this one later.
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

// Directories that pods mount as /config, and the directory of keepalived's scripts.
const (
	keepalivedDir = v1alpha1.ResourceDir + "/keepalived"
	haproxyDir    = v1alpha1.ResourceDir + "/haproxy"
	checkDir      = "/etc/keepalived"
)

// Names that templates share.
const (
	// Namespace is the namespace of the mirror pods in the manifests.
	Namespace = "openshift-reference-infra"
	// table is the nftables table of the redirect, of family inet.
	table = "reference"
	// redirectFile exists while the redirect does (baremetal-runtimecfg, pkg/monitor:
	// iptablesFilePath).
	redirectFile = "/var/run/keepalived/iptables-rule-exists"
)

// Names for templates.
func (facts) Namespace() string      { return Namespace }
func (facts) Table() string          { return table }
func (facts) RedirectFile() string   { return redirectFile }
func (facts) KeepalivedDir() string  { return keepalivedDir }
func (facts) HAProxyDir() string     { return haproxyDir }
func (facts) CheckDir() string       { return checkDir }
func (facts) KeepalivedConf() string { return v1alpha1.KeepalivedConf }
func (facts) HAProxyConf() string    { return v1alpha1.HAProxyConf }

// RouterPods returns the API path that lists the default ingress controller's routers on this node,
// all that a kubelet may list.
func (f facts) RouterPods() string {
	query := url.Values{
		"labelSelector": {"ingresscontroller.operator.openshift.io/deployment-ingresscontroller=" + v1alpha1.DefaultIngress},
		"fieldSelector": {"spec.nodeName=" + f.Node},
	}
	at := net.JoinHostPort(f.APIVIPs[0].String(), strconv.Itoa(f.Ports.API))
	return "https://" + at + "/api/v1/namespaces/openshift-ingress/pods?" + query.Encode()
}

// redirect is the redirect of a VIP.
type redirect struct {
	Family string // nft's name of it
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
