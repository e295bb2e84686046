package machine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/e2e/image"
	"github.com/vipgen/vipgen/golden/daemon"
	"github.com/vipgen/vipgen/lab/container"
	"github.com/vipgen/vipgen/lab/kubeapi"
	"github.com/vipgen/vipgen/lab/netns"
	"github.com/vipgen/vipgen/lab/standin"
	"github.com/vipgen/vipgen/lab/unit"
)

const (
	installConfig = `apiVersion: v1
baseDomain: example.com
metadata:
  name: demo
networking:
  machineNetwork:
  - cidr: 192.0.2.0/24
controlPlane:
  name: master
  replicas: 3
compute:
- name: worker
  replicas: 2
platform:
  baremetal:
    apiVIPs: [192.0.2.5]
    ingressVIPs: [192.0.2.6]
    loadBalancer:
      type: UserManaged
`
	domain       = "demo.example.com"
	podNamespace = "openshift-kni-infra"
	siteAddr     = "192.0.2.2"
)

var apiVIP = netip.MustParseAddr("192.0.2.5")

// cluster is what nodes of one cluster share.
type cluster struct {
	t        *testing.T
	network  *netns.Network
	rendered string // the directory that vipgen render wrote
	plane    kubeapi.Plane
	archives map[string]string // of images, by name
}

// clusterNode is a node with what Ignition wrote for its role.
type clusterNode struct {
	node
	cluster *cluster
	role    string
	addr    netip.Addr
	pods    map[string]*corev1.Pod // those that Ignition wrote, by name
	agent   string                 // the agent's image
	server  kubeapi.Server         // of a node with an API server
	booted  bool                   // before
}

// newCluster renders a cluster, and starts what its site has: a name server, and etcd.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, network: daemon.NewNetwork(t), rendered: render(t), archives: map[string]string{toolsImage: toolsArchive(t)}}
	addr := netip.MustParseAddr(siteAddr)
	site, err := c.network.AddNode("site", netip.PrefixFrom(addr, 24))
	c.must(err)
	names, err := standin.NewNameServer(site, addr, standin.ExampleRecord)
	c.must(err)
	t.Cleanup(func() { names.Close() })
	c.plane, err = kubeapi.NewReal(kubeapi.RealConfig{
		Dir: t.TempDir(), Etcd: tool(t, "etcd"), APIServer: tool(t, "kube-apiserver"), Node: site, Addr: addr, Domain: domain,
	})
	c.must(err)
	t.Cleanup(func() {
		if err := c.plane.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// add installs a node, which is not booted then.
func (c *cluster) add(name, role, addr string) *clusterNode {
	c.t.Helper()
	n := &clusterNode{cluster: c, role: role, addr: netip.MustParseAddr(addr)}
	n.Machine = newMachine(c.t, c.network, name, addr+"/24", map[string]string{"kubelet": tool(c.t, "kubelet"), "kubectl": tool(c.t, "kubectl")})
	config, err := os.ReadFile(filepath.Join(c.rendered, "ignition", role+".ign"))
	c.must(err)
	c.patiently(func(ctx context.Context) error { return n.Ignite(ctx, tool(c.t, "ignition"), config) })
	n.readPods()
	if role == v1alpha1.RoleMaster || role == v1alpha1.RoleBootstrap {
		n.server, err = c.plane.Server(n.Node, n.addr, n.addr, apiVIP)
		c.must(err)
		n.addAdministrator()
	}
	return n
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// patiently calls f with a context that ends when patience does.
func (c *cluster) patiently(f func(ctx context.Context) error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	c.must(f(ctx))
}

// render writes what vipgen renders to a directory.
func render(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	input, out := filepath.Join(dir, "install-config.yaml"), filepath.Join(dir, "out")
	if err := os.WriteFile(input, []byte(installConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	if message, err := exec.Command(built(t, "vipgen"), "render", input, "--output", out).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, message)
	}
	return out
}

// readPods reads the pods that Ignition wrote, and makes the images that they name.
func (n *clusterNode) readPods() {
	c := n.cluster
	c.t.Helper()
	paths, err := filepath.Glob(n.Path(v1alpha1.ManifestDir + "/*.yaml"))
	c.must(err)
	n.pods = map[string]*corev1.Pod{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		c.must(err)
		pod := &corev1.Pod{}
		c.must(yaml.UnmarshalStrict(data, pod))
		n.pods[pod.Name] = pod
	}
	want := []string{"coredns", "keepalived", "mdns-publisher"}
	if n.role == v1alpha1.RoleMaster {
		want = slices.Insert(want, 1, "haproxy")
	}
	if got := slices.Sorted(maps.Keys(n.pods)); !slices.Equal(got, want) {
		c.t.Fatalf("Ignition wrote the pods %v, want %v", got, want)
	}
	n.agent = n.pods["mdns-publisher"].Spec.Containers[0].Image
	if c.archives[n.agent] == "" {
		c.archives[n.agent] = agentArchive(c.t, n.agent)
	}
	for _, pod := range n.pods {
		name := pod.Spec.Containers[0].Image
		if c.archives[name] != "" {
			continue
		}
		var i *image.Image
		switch pod.Name {
		case "coredns":
			i, err = image.CoreDNS(name, tool(c.t, "coredns"), made)
		case "keepalived", "haproxy":
			i, err = image.Debian(name, made, "/usr/sbin/"+pod.Name)
		}
		c.archives[name] = write(c.t, i, err)
	}
}

// addAdministrator puts the cluster administrator's credentials where kubectl finds
// them, and those of the bootstrap, which has the same.
func (n *clusterNode) addAdministrator() {
	c := n.cluster
	c.t.Helper()
	pair, err := c.plane.CA().Client("admin", "system:masters")
	c.must(err)
	type object map[string]any
	config, err := json.Marshal(object{
		"apiVersion": "v1", "kind": "Config", "current-context": "x",
		"clusters": []object{{"name": "c", "cluster": object{"server": "https://localhost:6443", "certificate-authority-data": c.plane.CA().CertPEM}}},
		"users":    []object{{"name": "u", "user": object{"client-certificate-data": pair.Cert, "client-key-data": pair.Key}}},
		"contexts": []object{{"name": "x", "context": object{"cluster": "c", "user": "u"}}},
	})
	c.must(err)
	c.must(n.WriteMode("/root/.kube/config", config, 0o600))
	if n.role == v1alpha1.RoleBootstrap {
		c.must(n.WriteMode("/etc/kubernetes/kubeconfig", config, 0o600))
	}
}

// kubectl asks the node's own API server, as administrator.
func (n *clusterNode) kubectl(args ...string) (out string) {
	n.cluster.t.Helper()
	n.cluster.patiently(func(ctx context.Context) (err error) {
		out, err = n.Output(ctx, "kubectl", args...)
		return err
	})
	return out
}

// startAPI starts the node's API server, which is no pod here.
func (n *clusterNode) startAPI() {
	n.cluster.t.Helper()
	n.cluster.must(n.server.Launch())
	n.cluster.patiently(n.server.AwaitReady)
}

// prepareCluster makes the namespaces that are others' business, and what vipgen
// renders for the cluster.
func (n *clusterNode) prepareCluster() {
	n.cluster.t.Helper()
	for _, name := range []string{podNamespace, "openshift-etcd"} {
		n.kubectl("create", "namespace", name)
	}
	n.cluster.must(os.CopyFS(n.Path("/root/manifests"), os.DirFS(filepath.Join(n.cluster.rendered, "manifests"))))
	n.kubectl("apply", "-f", "/root/manifests")
}

// boot does what happens on the node from its network to its pods.
func (n *clusterNode) boot() {
	c := n.cluster
	c.t.Helper()
	if n.server != nil && !n.server.Running() {
		n.startAPI()
	}
	n.runUnits()
	cfg := KubeletConfig{CA: c.plane.CA(), NodeIPs: n.nodeIPs()}
	if n.role != v1alpha1.RoleBootstrap { // which is no node
		var err error
		cfg.Kubeconfig, err = kubeapi.WriteKubeconfig(n.Path("/"), "/var/lib/kubelet", c.plane.CA(), n.Name, "api-int."+domain+":6443")
		c.must(err)
	}
	var images []string
	if !n.booted {
		images = slices.Sorted(maps.Values(c.archives))
	}
	n.node = boot(c.t, n.Machine, cfg, images...)
	n.booted = true
}

// runUnits runs the services that Ignition enabled, as systemd does before kubelet.
func (n *clusterNode) runUnits() {
	c := n.cluster
	c.t.Helper()
	c.must(n.Write("/run/NetworkManager/resolv.conf", []byte("search example.com\nnameserver "+siteAddr+"\n")))
	units, err := n.EnabledUnits()
	c.must(err)
	images := map[string]container.Image{n.agent: {Programs: map[string]string{"/usr/bin/vipgen-agent": built(c.t, "vipgen-agent")}}}
	for _, name := range units {
		if filepath.Ext(name) != ".service" {
			continue
		}
		c.patiently(func(ctx context.Context) error {
			out, err := unit.Run(ctx, n.Host, images, name)
			if err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
			return err
		})
	}
	resolv, err := n.Read("/etc/resolv.conf")
	if err != nil || !strings.Contains(string(resolv), "nameserver "+n.addr.String()+"\nnameserver "+siteAddr+"\n") {
		c.t.Errorf("resolv.conf of %s: %v\n%s", n.Name, err, resolv)
	}
}

// nodeIPs are the addresses that vipgen has chosen for kubelet.
func (n *clusterNode) nodeIPs() (ips []netip.Addr) {
	c := n.cluster
	c.t.Helper()
	data, err := n.Read("/etc/systemd/system/kubelet.service.d/20-nodenet.conf")
	c.must(err)
	for _, field := range strings.FieldsFunc(string(data), func(r rune) bool { return strings.ContainsRune("\n \"", r) }) {
		if list, ok := strings.CutPrefix(field, "KUBELET_NODE_IPS="); ok {
			for ip := range strings.SplitSeq(list, ",") {
				ips = append(ips, netip.MustParseAddr(ip))
			}
		}
	}
	if !slices.Equal(ips, []netip.Addr{n.addr}) {
		c.t.Errorf("kubelet of %s is given the addresses %v by\n%s", n.Name, ips, data)
	}
	return ips
}

// awaitPods returns the status of every container of the pods, as pod/container, when
// all are up.
func (n *clusterNode) awaitPods() map[string]corev1.ContainerStatus {
	n.cluster.t.Helper()
	out := map[string]corev1.ContainerStatus{}
	for _, name := range slices.Sorted(maps.Keys(n.pods)) {
		for _, c := range n.pods[name].Spec.Containers {
			out[name+"/"+c.Name] = n.await(n.cluster.t, "up", name, c.Name, running)
		}
	}
	return out
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(250 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited for %s in vain", what)
		}
	}
}
