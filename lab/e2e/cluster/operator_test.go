package cluster

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/image"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/lab/e2e/rig"
	"github.com/vipgen/vipgen/lab/testbed/reference"
)

// release is a release of OpenShift, as far as it matters to nodes.
type release struct {
	version             string // as "4.18"
	keepalived, haproxy daemon.Generation
}

// image is the name of one of the release's images.
func (r release) image(name string) string { return "registry.example.com/" + name + ":" + r.version }

// makeImages makes the release's images: keepalived and HAProxy, with the programs of their
// scripts, and CoreDNS.
func (c *cluster) makeImages(r release) {
	c.t.Helper()
	for name, g := range map[string]daemon.Generation{r.image("keepalived"): r.keepalived, r.image("haproxy"): r.haproxy} {
		c.images[name] = rig.OperatorsArchive(c.t, name, g.Root(c.t))
	}
	dns, err := image.Program(r.image("coredns"), rig.Tool(c.t, "coredns"), rig.Made)
	c.images[r.image("coredns")] = rig.Archive(c.t, dns, err)
}

// operatorsUnread are files of the operator whose text neither an import nor its pods here
// read.
var operatorsUnread = map[string]string{
	v1alpha1.ModeFile:           "mode: unicast\n",
	v1alpha1.HAProxyTemplate:    "frontend main\n  bind :::{{ .LBConfig.LbPort }} v4v6\n",
	v1alpha1.CorefileTemplate:   ". {\n    health :18080\n}\n",
	v1alpha1.KeepalivedTemplate: "global_defs {\n    script_user root\n}\n",
}

// operatorsWords are true of the cluster, see assets.Entry.
var operatorsWords = []string{"baremetal", "vips", "managed"}

// operatorsBundle returns the operator's files of a release on nodes of a pool, according to
// the operator contract. manifests are those of its pods of keepalived and HAProxy.
func operatorsBundle(r release, role string, manifests map[string]string) ignition.Bundle {
	b := ignition.Bundle{Role: role}
	for _, e := range assets.Contract {
		if e.Treatment == assets.Supplied || !e.Applies(operatorsWords, role, r.version) {
			continue
		}
		text, mode := "# "+e.Name+" of the operator\n", 0o644
		pod := strings.TrimSuffix(path.Base(e.Name), ".yaml")
		switch {
		case !strings.HasPrefix(e.Name, "/"):
			b.Units = append(b.Units, ignition.Unit{Name: e.Name, Contents: "[Unit]\nDescription=" + e.Name + " of the operator\n"})
			continue
		case path.Dir(e.Name) == v1alpha1.ManifestDir && pod == "coredns":
			text = rig.OperatorsCoreDNS(podNamespace, r.image(pod))
		case path.Dir(e.Name) == v1alpha1.ManifestDir && manifests[pod] != "":
			text = manifests[pod]
		case path.Dir(e.Name) == v1alpha1.ManifestDir:
			continue // pods unrelated to VIPs
		case operatorsUnread[e.Name] != "":
			text = operatorsUnread[e.Name]
		case strings.HasSuffix(e.Name, ".sh") || strings.Contains(e.Name, "dispatcher.d"):
			text, mode = "#!/bin/sh\n"+text, 0o755
		}
		b.Files = append(b.Files, ignition.File{Path: e.Name, Mode: mode, Contents: []byte(text)})
	}
	return b
}

// operatorsManifests returns the manifests of the operator's pods on a node, from package
// lab/testbed/reference.
func (n *node) operatorsManifests(r release) map[string]string {
	c := n.cluster
	c.t.Helper()
	n.renderOperators(r)
	out := map[string]string{}
	for _, pod := range []string{"keepalived", "haproxy"} {
		file := v1alpha1.ManifestDir + "/" + pod + ".yaml"
		data, err := n.Read(file)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		c.must(err)
		out[pod] = strings.ReplaceAll(string(data), reference.Namespace, podNamespace)
		c.must(os.Remove(n.Path(file)))
	}
	return out
}

// renderOperators does the work of the operator's units and init containers at boot: they
// choose the node's address, write resolv.conf, and render the configurations of the daemons.
func (n *node) renderOperators(r release) {
	c := n.cluster
	c.t.Helper()
	for _, file := range []string{v1alpha1.KeepalivedConf, v1alpha1.HAProxyConf, v1alpha1.ResourceDir + "/keepalived/keepalived.conf", v1alpha1.ResourceDir + "/haproxy/haproxy.cfg"} {
		if err := os.Remove(n.Path(file)); !errors.Is(err, os.ErrNotExist) {
			c.must(err)
		}
	}
	facts := &v1alpha1.Node{Name: n.Name, Role: n.role, Interfaces: []v1alpha1.Interface{{
		Name: n.Link, Addresses: []netip.Prefix{netip.PrefixFrom(n.addr, 24)}, DefaultRoute4: true,
	}}}
	for _, other := range c.nodes() {
		if other != n {
			facts.Peers = append(facts.Peers, v1alpha1.Peer{Name: other.Name, Role: other.role, Addresses: []netip.Addr{other.addr}})
		}
	}
	c.must(reference.Install(n.Host, c.config(n.role), facts, v1alpha1.Images{Keepalived: r.image("keepalived"), HAProxy: r.image("haproxy")}))
	addr := n.addr.String()
	for file, text := range map[string]string{
		v1alpha1.Corefile:  rig.OperatorsCorefile(apiVIP, domain, siteAddr),
		"/etc/resolv.conf": "search " + domain + "\nnameserver " + addr + "\nnameserver " + siteAddr + "\n",
		"/etc/systemd/system/kubelet.service.d/20-nodenet.conf": fmt.Sprintf("[Service]\nEnvironment=\"KUBELET_NODE_IP=%[1]s\" \"KUBELET_NODE_IPS=%[1]s\"\n", addr),
		"/etc/systemd/system/crio.service.d/20-nodenet.conf":    fmt.Sprintf("[Service]\nEnvironment=\"CONTAINER_STREAM_ADDRESS=%s\"\n", addr),
		// Debian's keepalived 2.3 wants this file, over which the pods mount the node's directory.
		"/etc/keepalived/keepalived.config-opts": "",
	} {
		c.must(n.Write(file, []byte(text)))
	}
}

// openShiftManaged is the type of the load balancer that the operator sets up.
const openShiftManaged = "OpenShiftManagedDefault"

// config returns the rendered config for nodes of a role.
func (c *cluster) config(role string) *v1alpha1.ClusterConfig {
	c.t.Helper()
	data, err := os.ReadFile(filepath.Join(c.rendered, "files", role, v1alpha1.ClusterConfigPath))
	c.must(err)
	config, err := v1alpha1.LoadClusterConfig(v1alpha1.ClusterConfigPath, data)
	c.must(err)
	return config
}

// ways waits until every node reports these VRRP settings.
func (c *cluster) ways(want v1alpha1.VRRPSettings) {
	c.t.Helper()
	c.until("all nodes to elect as "+want.String(), func() bool {
		said := c.kubectl("get", "nodes", "-o", `jsonpath={range .items[*]}{.metadata.annotations.vipgen\.io/vrrp}{"\n"}{end}`)
		return strings.Count(said, fmt.Sprintf(`"running":%q`, want)) == len(c.nodes())
	})
}
