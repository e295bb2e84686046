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
	nodeAddr     = "192.0.2.10"
	peerAddr     = "192.0.2.11"
)

var apiVIP = netip.MustParseAddr("192.0.2.5")

// daemons are the programs in the images of the pods' first containers.
var daemons = map[string]map[string]string{
	"keepalived": {"/usr/sbin/keepalived": "/usr/sbin/keepalived"},
	"haproxy":    {"/usr/sbin/haproxy": "/usr/sbin/haproxy"},
	"coredns":    {"/usr/bin/coredns": "../../.cache/bin/coredns"},
}

// controlPlane is a control-plane node with what Ignition wrote, and the API of its
// cluster.
type controlPlane struct {
	node
	t       *testing.T
	pods    map[string]*corev1.Pod // those that Ignition wrote, by name
	agent   string                 // the agent's image
	plane   kubeapi.Plane
	server  kubeapi.Server
	kubectl func(args ...string) string // as administrator
	images  []string                    // to be imported at the first boot
}

// newControlPlane installs a node that was not booted yet, and starts the API with
// what a cluster has in it.
func newControlPlane(t *testing.T) *controlPlane {
	t.Helper()
	rendered := render(t)
	network := newNetwork(t)
	site := addNode(t, network, "site", siteAddr+"/24")
	names, err := standin.NewNameServer(site, netip.MustParseAddr(siteAddr), standin.ExampleRecord)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { names.Close() })
	n := &controlPlane{t: t}
	n.Machine = newMachine(t, network, "master-0", nodeAddr+"/24", map[string]string{"kubelet": tool(t, "kubelet"), "kubectl": tool(t, "kubectl")})
	n.ignite(filepath.Join(rendered, "ignition/master.ign"))
	n.pods = n.manifests()
	n.agent = n.pods["mdns-publisher"].Spec.Containers[0].Image
	n.images = n.makeImages()
	n.newAPI(site)
	n.startAPI()
	n.prepareCluster(rendered)
	n.registerNodes()
	return n
}

func (n *controlPlane) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// patiently calls f with a context that ends when patience does.
func (n *controlPlane) patiently(f func(ctx context.Context) error) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), patience)
	defer cancel()
	n.must(f(ctx))
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

// built is a program of vipgen's own.
func built(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs("../../bin/" + name)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("%s is not built: run `make build` (%v)", name, err)
	}
	return path
}

func addNode(t *testing.T, network *netns.Network, name, addr string) *netns.Node {
	t.Helper()
	node, err := network.AddNode(name, netip.MustParsePrefix(addr))
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// ignite writes the machine's root.
func (n *controlPlane) ignite(config string) {
	n.t.Helper()
	data, err := os.ReadFile(config)
	n.must(err)
	n.patiently(func(ctx context.Context) error { return n.Ignite(ctx, tool(n.t, "ignition"), data) })
}

func (n *controlPlane) manifests() map[string]*corev1.Pod {
	n.t.Helper()
	paths, err := filepath.Glob(n.Path(v1alpha1.ManifestDir + "/*.yaml"))
	n.must(err)
	pods := map[string]*corev1.Pod{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		n.must(err)
		pod := &corev1.Pod{}
		n.must(yaml.UnmarshalStrict(data, pod))
		pods[pod.Name] = pod
	}
	if got := slices.Sorted(maps.Keys(pods)); !slices.Equal(got, []string{"coredns", "haproxy", "keepalived", "mdns-publisher"}) {
		n.t.Fatalf("Ignition wrote the pods %v", got)
	}
	return pods
}

// makeImages makes the archives of those that the pods name.
func (n *controlPlane) makeImages() []string {
	n.t.Helper()
	all := []string{toolsArchive(n.t), makeImage(n.t, n.agent, map[string]string{"/usr/bin/vipgen-agent": built(n.t, "vipgen-agent")})}
	for _, name := range slices.Sorted(maps.Keys(daemons)) {
		all = append(all, makeImage(n.t, n.pods[name].Spec.Containers[0].Image, daemons[name]))
	}
	return all
}

// newAPI starts etcd, and prepares the node's API server, which is no pod here.
func (n *controlPlane) newAPI(site *netns.Node) {
	n.t.Helper()
	var err error
	n.plane, err = kubeapi.NewReal(kubeapi.RealConfig{
		Dir: n.t.TempDir(), Etcd: tool(n.t, "etcd"), APIServer: tool(n.t, "kube-apiserver"),
		Node: site, Addr: netip.MustParseAddr(siteAddr), Domain: domain,
	})
	n.must(err)
	n.t.Cleanup(func() {
		if err := n.plane.Close(); err != nil {
			n.t.Error(err)
		}
	})
	addr := netip.MustParseAddr(nodeAddr)
	n.server, err = n.plane.Server(n.Node, addr, addr, apiVIP)
	n.must(err)
	n.kubectl = n.administrator()
}

func (n *controlPlane) startAPI() {
	n.t.Helper()
	n.must(n.server.Launch())
	n.patiently(n.server.AwaitReady)
}

// administrator returns kubectl as the cluster's administrator uses it, on the node.
func (n *controlPlane) administrator() func(args ...string) string {
	n.t.Helper()
	pair, err := n.plane.CA().Client("admin", "system:masters")
	n.must(err)
	type object map[string]any
	config, err := json.Marshal(object{
		"apiVersion": "v1", "kind": "Config", "current-context": "x",
		"clusters": []object{{"name": "c", "cluster": object{"server": "https://localhost:6443", "certificate-authority-data": n.plane.CA().CertPEM}}},
		"users":    []object{{"name": "u", "user": object{"client-certificate-data": pair.Cert, "client-key-data": pair.Key}}},
		"contexts": []object{{"name": "x", "context": object{"cluster": "c", "user": "u"}}},
	})
	n.must(err)
	n.must(n.WriteMode("/root/.kube/config", config, 0o600))
	return func(args ...string) (out string) {
		n.t.Helper()
		n.patiently(func(ctx context.Context) (err error) {
			out, err = n.Output(ctx, "kubectl", args...)
			return err
		})
		return out
	}
}

// prepareCluster makes the namespaces that are others' business, and what vipgen
// renders for the cluster.
func (n *controlPlane) prepareCluster(rendered string) {
	n.t.Helper()
	for _, name := range []string{podNamespace, "openshift-etcd"} {
		n.kubectl("create", "namespace", name)
	}
	n.must(os.CopyFS(n.Path("/root/manifests"), os.DirFS(filepath.Join(rendered, "manifests"))))
	n.kubectl("apply", "-f", "/root/manifests")
}

// registerNodes makes the machine known as a node that has been there before, as after
// a reboot, with a peer, which is a Node and nothing else. On a cluster that is being
// installed the bootstrap host holds the VIP by which a kubelet registers its node;
// here there is none, and a node that is not registered takes no part (hard case 3).
func (n *controlPlane) registerNodes() {
	n.t.Helper()
	for name, addr := range map[string]string{n.Name: nodeAddr, "master-1": peerAddr} {
		node := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": %q, "labels": {"node-role.kubernetes.io/master": "", "node-role.kubernetes.io/control-plane": ""}}}`, name)
		status := fmt.Sprintf(`{"status": {"addresses": [{"type": "InternalIP", "address": %q}]}}`, addr)
		n.patiently(func(ctx context.Context) error { return n.plane.Create(ctx, "/api/v1/nodes", []byte(node)) })
		n.patiently(func(ctx context.Context) error {
			return n.plane.Patch(ctx, "/api/v1/nodes/"+name+"/status", []byte(status))
		})
	}
}

// boot does what happens on the node from its network to its pods.
func (n *controlPlane) boot() {
	n.t.Helper()
	if !n.server.Running() {
		n.startAPI()
	}
	n.runUnits()
	kubeconfig, err := kubeapi.WriteKubeconfig(n.Path("/"), "/var/lib/kubelet", n.plane.CA(), n.Name, "api-int."+domain+":6443")
	n.must(err)
	n.node = boot(n.t, n.Machine, KubeletConfig{CA: n.plane.CA(), Kubeconfig: kubeconfig, NodeIPs: n.nodeIPs()}, n.images...)
	n.images = nil // they are there
}

// runUnits runs the services that Ignition enabled, as systemd does before kubelet.
func (n *controlPlane) runUnits() {
	n.t.Helper()
	n.must(n.Write("/run/NetworkManager/resolv.conf", []byte("search example.com\nnameserver "+siteAddr+"\n")))
	units, err := n.EnabledUnits()
	n.must(err)
	images := map[string]container.Image{n.agent: {Programs: map[string]string{"/usr/bin/vipgen-agent": built(n.t, "vipgen-agent")}}}
	for _, name := range units {
		if filepath.Ext(name) != ".service" {
			continue
		}
		n.patiently(func(ctx context.Context) error {
			out, err := unit.Run(ctx, n.Host, images, name)
			if err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
			return err
		})
	}
	resolv, err := n.Read("/etc/resolv.conf")
	if err != nil || !strings.Contains(string(resolv), "nameserver "+nodeAddr+"\nnameserver "+siteAddr+"\n") {
		n.t.Errorf("resolv.conf: %v\n%s", err, resolv)
	}
}

// nodeIPs are the addresses that vipgen has chosen for kubelet.
func (n *controlPlane) nodeIPs() (ips []netip.Addr) {
	n.t.Helper()
	data, err := n.Read("/etc/systemd/system/kubelet.service.d/20-nodenet.conf")
	n.must(err)
	for _, field := range strings.FieldsFunc(string(data), func(r rune) bool { return strings.ContainsRune("\n \"", r) }) {
		if list, ok := strings.CutPrefix(field, "KUBELET_NODE_IPS="); ok {
			for ip := range strings.SplitSeq(list, ",") {
				ips = append(ips, netip.MustParseAddr(ip))
			}
		}
	}
	if !slices.Equal(ips, []netip.Addr{netip.MustParseAddr(nodeAddr)}) {
		n.t.Errorf("kubelet is given the addresses %v by\n%s", ips, data)
	}
	return ips
}

// awaitPods returns the status of every container of the pods, as pod/container, when
// all are as they should be.
func (n *controlPlane) awaitPods(ok func(corev1.ContainerStatus) bool) map[string]corev1.ContainerStatus {
	n.t.Helper()
	out := map[string]corev1.ContainerStatus{}
	for _, name := range slices.Sorted(maps.Keys(n.pods)) {
		for _, c := range n.pods[name].Spec.Containers {
			out[name+"/"+c.Name] = n.await(n.t, "up", name, c.Name, ok)
		}
	}
	return out
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited for %s in vain", what)
		}
	}
}
