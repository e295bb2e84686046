package firstboot

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/image"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/e2e/rig"
)

// apiVIP is the API VIP of installConfig.
var apiVIP = netip.MustParseAddr("192.168.111.5")

const (
	pkiDir    = "/etc/kubernetes/pki"
	imageDir  = "/var/images"
	apiServer = "kube-apiserver"
	// mostPoints is the priority of a node with everything that this site has: there is no
	// machine config server, which would add three points.
	mostPoints = 65
)

// controlPlane is two control-plane nodes with a real kubelet, containerd and API server,
// which share an etcd on the site's host.
type controlPlane struct {
	*site
	nodes    []*node
	booted   map[*node]time.Time // when last
	rendered []byte              // what vipgen rendered for the nodes
}

// newControlPlane boots the nodes and returns when each could hold the VIP. spec are lines of
// vipgen.yaml.
func newControlPlane(t *testing.T, install string, spec ...string) *controlPlane {
	t.Helper()
	c := &controlPlane{site: newSite(t), booted: map[*node]time.Time{}}
	c.agent = agentImage + ":v1" // containerd has it by this name
	c.startRegistry()
	c.startEtcd()
	images := map[string]string{"agent": c.agent}
	for _, name := range []string{"coredns", "haproxy", "keepalived"} {
		images[name] = "localhost/" + name + ":1"
	}
	list, err := json.Marshal(images)
	c.must(err)
	out := c.renderAll(install, append(spec, "images: "+string(list))...)
	c.rendered, err = os.ReadFile(filepath.Join(out, "ignition/master.ign"))
	c.must(err)
	archives := c.archives()
	for i, name := range []string{"master-0", "master-1"} {
		n := c.addNode(name, c.programs(), c.rendered, c.files(name, controlAddr(i)))
		c.give(n, archives...)
		c.booted[n] = time.Now()
		c.must(n.Boot())
		c.nodes = append(c.nodes, n)
	}
	for i, n := range c.nodes {
		c.register(n, controlAddr(i))
	}
	for _, name := range []string{"openshift-etcd", "openshift-kni-infra"} {
		c.kubectl("create", "namespace", name)
	}
	c.kubectl("apply", "-f", filepath.Join(out, "manifests"))
	c.awaitBoth()
	for _, n := range c.nodes {
		n.checkScopes()
	}
	return c
}

// give puts images on a node's disk, for containerd to import when it starts.
func (c *controlPlane) give(n *node, archives ...string) {
	c.t.Helper()
	c.must(n.MkdirAll(imageDir))
	for _, archive := range archives {
		c.must(os.Link(archive, filepath.Join(n.Path(imageDir), filepath.Base(filepath.Dir(archive))+".tar")))
	}
}

// powerOn boots a node again.
func (c *controlPlane) powerOn(n *node) {
	c.t.Helper()
	c.booted[n] = time.Now()
	c.must(n.PowerOn())
}

func controlAddr(i int) netip.Addr { return netip.AddrFrom4([4]byte{192, 168, 111, byte(20 + i)}) }

// checkScopes: systemd ends containers as with CRI-O.
func (n *node) checkScopes() {
	n.t.Helper()
	containers := strings.Split(n.run("systemctl", "show", "cri-containerd-*.scope", "--property=Conflicts,TimeoutStopUSec"), "\n\n")
	for _, c := range containers {
		testkit.Contains(testkit.In(n.t, n.Name), c, "Conflicts=shutdown.target", "TimeoutStopUSec=45s")
	}
}

// startEtcd starts the cluster's etcd, which runs on no node.
func (c *controlPlane) startEtcd() {
	c.t.Helper()
	url := "http://" + siteAddr + ":2379"
	c.start(c.host, rig.Tool(c.t, "etcd"), "--data-dir="+filepath.Join(c.dir, "etcd"), "--listen-client-urls="+url, "--advertise-client-urls="+url,
		"--listen-peer-urls=http://127.0.0.1:2380", "--log-level=error", "--unsafe-no-fsync")
}

// programs returns programs of this machine that the nodes' operating system lacks.
func (c *controlPlane) programs() map[string]string {
	c.t.Helper()
	out := map[string]string{"kubelet": rig.Tool(c.t, "kubelet")}
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr", "runc"} {
		out[name] = testkit.Program(c.t, name)
	}
	return out
}

// archives are the images of all pods.
func (c *controlPlane) archives() (out []string) {
	c.t.Helper()
	add := func(i *image.Image, err error) { out = append(out, rig.Archive(c.t, i, err)) }
	add(image.Program("localhost/"+apiServer+":1", rig.Tool(c.t, apiServer), rig.Made))
	add(image.Program("localhost/coredns:1", rig.Tool(c.t, "coredns"), rig.Made))
	add(image.Debian("localhost/keepalived:1", rig.Made, "/usr/sbin/keepalived"))
	add(image.Debian("localhost/haproxy:1", rig.Made, "/usr/sbin/haproxy"))
	return append(out, rig.ToolsArchive(c.t), rig.AgentArchive(c.t, c.agent))
}

// files returns the files that a node with a kubelet needs.
func (c *controlPlane) files(name string, addr netip.Addr) map[string]string {
	c.t.Helper()
	out := map[string]string{"/etc/hostname": name + "\n"}
	root := os.DirFS("kubelet")
	c.must(fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, path)
		out["/"+path] = strings.ReplaceAll(string(data), "ADDRESS", addr.String())
		return err
	}))
	pair, err := c.ca.Serving(name, addr.String(), apiVIP.String(), "localhost", "127.0.0.1", "api.demo.example.com", "api-int.demo.example.com")
	c.must(err)
	out[pkiDir+"/ca.crt"] = string(c.ca.CertPEM)
	out[pkiDir+"/server.crt"], out[pkiDir+"/server.key"] = string(pair.Cert), string(pair.Key)
	out["/var/lib/kubelet/kubeconfig"] = string(rig.Kubeconfig(c.t, c.ca, "api-int.demo.example.com", "system:node:"+name, "system:nodes"))
	return out
}

// kubectl repeats a command against an API server until it succeeds, and returns its output.
func (c *controlPlane) kubectl(args ...string) (last string) {
	c.t.Helper()
	config := c.write("admin.kubeconfig", string(rig.Kubeconfig(c.t, c.ca, controlAddr(0).String(), "admin", "system:masters")))
	testkit.AwaitWithin(c.t, rig.Patience, "kubectl "+strings.Join(args, " "), func() bool {
		ctx, cancel := context.WithTimeout(c.t.Context(), testkit.Patience)
		defer cancel()
		out, err := c.host.Command(ctx, rig.Tool(c.t, "kubectl"), append([]string{"--kubeconfig", config}, args...)...).CombinedOutput()
		last = string(out)
		// An interrupted call may have been carried out.
		return err == nil || args[0] == "create" && strings.Contains(last, "AlreadyExists")
	}, func() string { return last })
	return last
}

// register creates the Node of a kubelet, which could do so itself through a bootstrap host
// with the VIP: there is none, and the Node decides whether a node may hold the VIP. It has
// capacity from the beginning: kubelet permanently refuses static pods for which its Node has
// none.
func (c *controlPlane) register(n *node, addr netip.Addr) {
	c.t.Helper()
	const room = `{cpu: "8", memory: 16Gi, ephemeral-storage: 64Gi, pods: "110"}`
	c.kubectl("create", "-f", c.write(n.Name+".yaml", fmt.Sprintf(`apiVersion: v1
kind: Node
metadata: {name: %[1]s, labels: {node-role.kubernetes.io/master: "", kubernetes.io/hostname: %[1]s}}
status:
  addresses: [{type: InternalIP, address: %[2]q}, {type: Hostname, address: %[1]s}]
  capacity: %[3]s
  allocatable: %[3]s
`, n.Name, addr, room)))
}

// awaitBoth waits until both nodes are equally good holders of the VIP, by the priorities in
// their keepalived's state.
func (c *controlPlane) awaitBoth() {
	c.t.Helper()
	want := fmt.Sprintf(" to %d\" daemon=keepalived", mostPoints)
	for _, n := range c.nodes {
		var said string
		testkit.AwaitWithin(c.t, rig.Patience, n.Name+" to be as good a holder as any", func() bool {
			said = ""
			for line := range strings.Lines(n.podLog(c.booted[n], "keepalived", "keepalived")) {
				if strings.Contains(line, "Changing effective priority") {
					said = line
				}
			}
			return strings.HasSuffix(strings.TrimSpace(said), want)
		}, func() string { return said })
	}
}
