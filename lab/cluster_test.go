package lab

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/golden/daemon"
	"github.com/vipgen/vipgen/lab/container"
	"github.com/vipgen/vipgen/lab/netns"
)

// The images that vipgen.yaml names.
const (
	agentImage      = "registry.example.com/agent:1"
	keepalivedImage = "registry.example.com/keepalived:1"
	haproxyImage    = "registry.example.com/haproxy:1"
	corednsImage    = "registry.example.com/coredns:1"
)

const vipgenYAML = `apiVersion: vipgen.io/v1alpha1
kind: VIPConfig
metadata:
  name: demo
spec:
  images:
    agent: ` + agentImage + `
    keepalived: ` + keepalivedImage + `
    haproxy: ` + haproxyImage + `
    coredns: ` + corednsImage + `
  dns:
    records:
    - name: registry.example.com
      addresses: [192.0.2.99]
`

// installConfig is dual-stack, and leaves the load balancer to vipgen alone, so
// that the fast profile holds from the first packet.
const installConfig = `apiVersion: v1
baseDomain: example.com
metadata:
  name: demo
networking:
  machineNetwork:
  - cidr: 192.0.2.0/24
  - cidr: 2001:db8::/64
controlPlane:
  name: master
  replicas: 3
compute:
- name: worker
  replicas: 2
platform:
  baremetal:
    apiVIPs: [192.0.2.5, "2001:db8::5"]
    ingressVIPs: [192.0.2.6, "2001:db8::6"]
    loadBalancer:
      type: UserManaged
`

const domain = "demo.example.com"

var (
	api     = netip.MustParseAddr("192.0.2.5")
	api6    = netip.MustParseAddr("2001:db8::5")
	ingress = netip.MustParseAddr("192.0.2.6")
	// upstream is the site's own name server.
	upstream = netip.MustParseAddr("192.0.2.250")
)

// cluster is the whole cluster, and what is around it.
type cluster struct {
	t       *testing.T // the test or subtest that runs
	top     *testing.T // the test that the cluster lasts for
	network *netns.Network
	images  map[string]container.Image
	client  *netns.Node
	control *daemon.ControlPlane
	nodes   []*node
	vips    []netip.Addr
	tree    string // what was rendered last
	events  string // a file with what happened to pods
	log     *slog.Logger
}

// newCluster makes the cluster: control plane and worker with all that they run.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, top: t, network: daemon.NewNetwork(t)}
	c.record()
	c.images = images(t)
	c.tree = c.render(installConfig)
	c.client = c.outside("client", 200)
	site := c.outside("site", 250)
	serveUpstream(t, site)
	// By IPv6: the IPv4 addresses of nodes change, and a real node has an etcd of
	// its own.
	c.control = daemon.NewControlPlane(t, domain, site, addresses(250)[1].Addr())
	for i := range 3 {
		c.add(fmt.Sprintf("master-%d", i), "master", 10+i)
	}
	c.add("worker-0", "worker", 20)
	c.startAPI()
	for _, n := range c.nodes {
		n.boot()
	}
	c.putRouter("worker-0")
	return c
}

// record keeps what happens to pods, and shows it if the test fails.
func (c *cluster) record() {
	c.t.Helper()
	file, err := os.Create(filepath.Join(c.top.TempDir(), "events"))
	if err != nil {
		c.t.Fatal(err)
	}
	c.events = file.Name()
	c.log = slog.New(slog.NewTextHandler(file, nil))
	c.top.Cleanup(func() {
		file.Close()
		if c.top.Failed() {
			c.top.Logf("what happened to pods:\n%s", tail(c.events, 200))
		}
	})
}

// images are made of this machine's programs; the agent's holds the agent alone.
func images(t *testing.T) map[string]container.Image {
	t.Helper()
	agent := filepath.Join(t.TempDir(), "vipgen-agent")
	build := exec.Command("go", "build", "-trimpath", "-o", agent, "../cmd/vipgen-agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building vipgen-agent: %v\n%s", err, out)
	}
	debian := container.Image{Distribution: true}
	return map[string]container.Image{
		agentImage:      {Programs: map[string]string{"/usr/bin/vipgen-agent": agent}},
		keepalivedImage: debian,
		haproxyImage:    debian,
		corednsImage:    {Distribution: true, Programs: map[string]string{"/coredns": tool(t, "coredns")}},
	}
}

// tool is one that the project builds at a pinned version.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../.cache/bin", name))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("%s is not built: run `make tools` (%v)", name, err)
	}
	return path
}

// render runs `vipgen render` and returns the tree that it wrote.
func (c *cluster) render(install string) string {
	c.t.Helper()
	dir := c.top.TempDir()
	for name, text := range map[string]string{"install-config.yaml": install, "vipgen.yaml": vipgenYAML} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			c.t.Fatal(err)
		}
	}
	var out strings.Builder
	args := []string{"render", filepath.Join(dir, "install-config.yaml"), "--format", "files", "-o", filepath.Join(dir, "rendered")}
	run := exec.Command("go", append([]string{"run", "../cmd/vipgen"}, args...)...)
	run.Stdout, run.Stderr = &out, &out
	if err := run.Run(); err != nil {
		c.t.Fatalf("vipgen %s: %v\n%s", strings.Join(args, " "), err, &out)
	}
	show(c.t, "vipgen render install-config.yaml --format files -o rendered", out.String())
	c.vips = nil
	for line := range strings.Lines(install) {
		if _, list, ok := strings.Cut(line, "VIPs: ["); ok {
			for _, word := range strings.Split(strings.TrimRight(list, "]\n"), ", ") {
				c.vips = append(c.vips, netip.MustParseAddr(strings.Trim(word, `"`)))
			}
		}
	}
	return filepath.Join(dir, "rendered")
}

// outside adds a host that is no node of the cluster.
func (c *cluster) outside(name string, n int) *netns.Node {
	c.t.Helper()
	node, err := c.network.AddNode(name, addresses(n)...)
	if err != nil {
		c.t.Fatal(err)
	}
	return node
}

func addresses(n int) []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix(fmt.Sprintf("192.0.2.%d/24", n)),
		netip.MustParsePrefix(fmt.Sprintf("2001:db8::%d/64", n)),
	}
}

// startAPI starts the API servers, and puts into them what the installer would.
func (c *cluster) startAPI() {
	c.t.Helper()
	for _, n := range c.masters() {
		n.api.Launch()
	}
	for _, n := range c.masters() {
		n.api.AwaitReady()
	}
	c.createNamespace("openshift-ingress")
	c.createNamespace(etcdNamespace)
	for _, name := range []string{"clusterrole", "clusterrolebinding", "role", "rolebinding"} {
		c.apply(name)
	}
	c.api().Create("/api/v1/namespaces/"+etcdNamespace+"/configmaps", []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: etcd-endpoints}}"))
	for _, n := range c.nodes {
		n.register()
	}
}

const rbac = "/apis/rbac.authorization.k8s.io/v1/"

// apply makes an object of the rendered manifests.
func (c *cluster) apply(name string) {
	c.t.Helper()
	data, err := os.ReadFile(filepath.Join(c.tree, "manifests", name+".yaml"))
	if err != nil {
		c.t.Fatal(err)
	}
	path := rbac
	if !strings.HasPrefix(name, "cluster") {
		path += "namespaces/" + etcdNamespace + "/"
	}
	c.api().Create(path+name+"s", data)
}

func (c *cluster) createNamespace(name string) {
	c.t.Helper()
	c.api().Create("/api/v1/namespaces", []byte("{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}"))
}

// api is the API server of the first control-plane node that is on.
func (c *cluster) api() *daemon.APIServer {
	for _, n := range c.masters() {
		if n.On() {
			return n.api
		}
	}
	c.t.Fatal("no control-plane node is on")
	return nil
}

func (c *cluster) masters() (out []*node) {
	for _, n := range c.nodes {
		if n.api != nil {
			out = append(out, n)
		}
	}
	return out
}

func (c *cluster) node(name string) *node {
	c.t.Helper()
	for _, n := range c.nodes {
		if n.Name == name {
			return n
		}
	}
	c.t.Fatalf("there is no node %s", name)
	return nil
}

// patience is how long anything may take that takes seconds on an idle machine.
const patience = 2 * time.Minute

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v in vain for %s", patience, what)
		}
	}
}

// began is when the test program did.
var began = time.Now()

// show prints a command and what came back, for those who run the test with -v.
func show(t *testing.T, command, output string) {
	t.Helper()
	fmt.Fprintf(t.Output(), "%6.1fs $ %s\n", time.Since(began).Seconds(), command)
	for line := range strings.Lines(output) {
		fmt.Fprintf(t.Output(), "          %s\n", strings.TrimRight(line, "\n"))
	}
}

// tail returns the last lines of a file.
func tail(path string, n int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(string(data), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
