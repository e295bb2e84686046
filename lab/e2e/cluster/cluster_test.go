package cluster

import (
	"context"
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/image"
	"github.com/vipgen/vipgen/internal/testbed/authority"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/e2e/rig"
	"github.com/vipgen/vipgen/lab/testbed/standin"
)

const (
	domain       = "demo.example.com"
	podNamespace = "openshift-kni-infra"
	siteAddr     = "192.0.2.2"
)

var (
	apiVIP     = netip.MustParseAddr("192.0.2.5")
	ingressVIP = netip.MustParseAddr("192.0.2.6")
)

// cluster holds everything that the nodes of a cluster share.
type cluster struct {
	t        *testing.T
	network  *netns.Network
	client   *netns.Node // the host of the cluster's client
	dir      string
	vip      netip.Addr // of the API
	balancer string     // the type of the load balancer in its install-config
	rendered string     // the directory that vipgen render wrote
	ca       *authority.Authority
	admin    authority.KeyPair
	accounts authority.KeyPair // signs the tokens of service accounts; none exist
	images   map[string]string // archives, by the image's name
	agents   map[string]string // the agent's program, by the image's name, if it is not the built one

	bootstrap        *node
	masters, workers []*node
	routed           bool // routers run
}

// newCluster renders a cluster, and makes the network with the services of its site: a name
// server, and a client.
func newCluster(t *testing.T, balancer string) *cluster {
	t.Helper()
	c := &cluster{
		t: t, network: daemon.NewNetwork(t), dir: t.TempDir(), vip: apiVIP, balancer: balancer,
		images: map[string]string{rig.ToolsImage: rig.ToolsArchive(t)},
	}
	c.rendered = c.render()
	var err error
	c.ca, err = authority.New("signer")
	c.must(err)
	c.admin, err = c.ca.Client("admin", "system:masters")
	c.must(err)
	c.accounts, err = c.ca.Serving("service-accounts")
	c.must(err)
	addr := netip.MustParseAddr(siteAddr)
	site, err := c.network.AddNode("site", netip.PrefixFrom(addr, 24))
	c.must(err)
	names, err := standin.NewNameServer(site, addr, standin.ExampleRecord)
	c.must(err)
	t.Cleanup(func() { names.Close() })
	c.client, err = c.network.AddNode("client", netip.MustParsePrefix("192.0.2.3/24"))
	c.must(err)
	for _, name := range controlPrograms {
		i, err := image.Program(programImage(name), rig.Tool(t, name), rig.Made)
		c.images[programImage(name)] = rig.Archive(t, i, err)
	}
	return c
}

// render runs vipgen render for the cluster, and returns the directory.
func (c *cluster) render() string {
	c.t.Helper()
	input, out := filepath.Join(c.dir, "input/install-config.yaml"), filepath.Join(c.dir, "rendered")
	testkit.WriteFile(c.t, input, []byte(rig.InstallConfig("192.0.2.0/24", apiVIP.String(), ingressVIP.String(), c.balancer)))
	config := "apiVersion: vipgen.io/v1alpha1\nkind: VIPConfig\nspec: {}\n"
	if *local != "" {
		config = strings.Replace(config, "{}", "{apiServer: {local: "+*local+"}}", 1)
	}
	testkit.WriteFile(c.t, filepath.Join(c.dir, "input/vipgen.yaml"), []byte(config))
	testkit.Run(c.t, exec.Command(testkit.Vipgen(c.t), "render", input, "--format", "ignition,files,machineconfig", "--dir", out))
	return out
}

// nodes returns the control-plane nodes and then the workers, without the bootstrap host.
func (c *cluster) nodes() []*node { return slices.Concat(c.masters, c.workers) }

func (c *cluster) must(err error) {
	c.t.Helper()
	testkit.Must(c.t, err)
}

// patiently calls f with a context that ends when patience does.
func (c *cluster) patiently(f func(ctx context.Context) error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), rig.Patience)
	defer cancel()
	c.must(f(ctx))
}

// until waits for a condition.
func (c *cluster) until(what string, ok func() bool) {
	c.t.Helper()
	rig.Eventually(c.t, what, ok)
}

// holder waits until one node alone holds a VIP, and returns it.
func (c *cluster) holder(vip netip.Addr) (holder *node) {
	c.t.Helper()
	c.until("one holder of "+vip.String(), func() bool {
		var holders []*node
		for _, n := range append(c.nodes(), c.bootstrap) {
			if n != nil && n.has(vip) {
				holders = append(holders, n)
			}
		}
		if len(holders) != 1 {
			return false
		}
		holder = holders[0]
		return true
	})
	return holder
}

// add installs a node without booting it.
func (c *cluster) add(name, role, addr string) *node {
	c.t.Helper()
	return c.addBy((*node).ignite, name, role, addr)
}

// addBy is add with another function that installs the node's files.
func (c *cluster) addBy(install func(*node), name, role, addr string) *node {
	c.t.Helper()
	n := &node{cluster: c, role: role, addr: netip.MustParseAddr(addr), control: map[string]*corev1.Pod{}}
	n.Machine = rig.NewMachine(c.t, c.network, name, addr+"/24", map[string]string{"kubelet": rig.Tool(c.t, "kubelet")})
	c.t.Cleanup(func() { n.keepLogs() })
	install(n)
	if role == v1alpha1.RoleBootstrap {
		c.must(n.WriteMode("/etc/kubernetes/kubeconfig", c.administrator("localhost"), 0o600))
	} else {
		c.must(n.WriteMode(bootstrapKubeconfig, c.kubeconfig("api-int."+domain, "system:bootstrap:"+name, "system:bootstrappers"), 0o600))
	}
	if role != v1alpha1.RoleWorker {
		n.prepareControlPlane()
	}
	return n
}
