package lab

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/testbed/pod"
	"github.com/vipgen/vipgen/render"
)

//go:embed testdata/vipgen.yaml
var vipgenYAML string

const domain = "demo.example.com"

var (
	api     = netip.MustParseAddr("192.0.2.5")
	api6    = netip.MustParseAddr("2001:db8::5")
	ingress = netip.MustParseAddr("192.0.2.6")
	// upstream is the site's own name server.
	upstream = netip.MustParseAddr("192.0.2.250")
)

// cluster is a lab with helpers for tests.
type cluster struct {
	*Cluster
	t      *testing.T // the running test or subtest
	top    *testing.T // the test that owns the cluster
	nodes  []*node
	vips   []netip.Addr
	events string // a file with the events of pods
}

// newCluster makes the demo cluster with one worker and real API servers.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	return newClusterOf(t, Config{Cluster: load(t, demo), Plan: planOf(3, 1), RealAPI: true})
}

// newClusterOf makes a cluster, and records the events of its pods.
func newClusterOf(t *testing.T, cfg Config) *cluster {
	t.Helper()
	c := &cluster{t: t, top: t}
	cfg.Log = c.record()
	c.build(t, cfg)
	return c
}

func (c *cluster) build(t *testing.T, cfg Config) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cfg.Dir, cfg.Programs, cfg.BackOff = t.TempDir(), realPrograms(t), backOff
	var err error
	c.Cluster, err = New(ctx, cfg)
	testkit.Must(t, err)
	t.Cleanup(c.close)
	for _, n := range c.Nodes() {
		c.nodes = append(c.nodes, &node{Node: n, cluster: c})
	}
	c.vips = vipsOf(cfg.Cluster)
}

// close removes the cluster, and prints the logs of its containers if the test has failed.
func (c *cluster) close() {
	if c.top.Failed() {
		for _, n := range c.nodes {
			c.top.Log(n.Logs(60))
		}
	}
	c.nodes = nil
	testkit.Check(c.top, c.Close())
}

// record records the events of pods, and prints them if the test fails.
func (c *cluster) record() *slog.Logger {
	c.t.Helper()
	file, err := os.Create(filepath.Join(c.top.TempDir(), "events"))
	testkit.Must(c.t, err)
	c.events = file.Name()
	c.top.Cleanup(func() {
		file.Close()
		if c.top.Failed() {
			c.top.Logf("events of pods:\n%s", tail(c.events, 200))
		}
	})
	return slog.New(slog.NewTextHandler(file, nil))
}

// programs are the project's own and CoreDNS.
func programs(t testing.TB) Programs {
	t.Helper()
	return Programs{Agent: testkit.Agent(t), CoreDNS: testkit.Tool(t, "coredns")}
}

// realPrograms returns the programs of a cluster with real API servers.
func realPrograms(t *testing.T) Programs {
	t.Helper()
	p := programs(t)
	p.Etcd, p.APIServer = testkit.Tool(t, "etcd"), testkit.Tool(t, "kube-apiserver")
	return p
}

// backOff is shorter than kubelet's, so that no test waits for minutes.
var backOff = pod.BackOff{Initial: time.Second, Max: 30 * time.Second, Reset: time.Minute}

// load reads an install-config, with the test's vipgen.yaml.
func load(t testing.TB, install string) *render.Cluster {
	t.Helper()
	return loadWith(t, install, vipgenYAML)
}

// loadWith is load with another vipgen.yaml.
func loadWith(t testing.TB, install, vipgen string) *render.Cluster {
	t.Helper()
	c, problems, err := render.Load(render.Sources{
		InstallConfig: render.File{Name: "install-config.yaml", Data: []byte(install)},
		VIPConfig:     &render.File{Name: "vipgen.yaml", Data: []byte(vipgen)},
	}, render.Options{})
	if err != nil || len(problems.Errors()) > 0 {
		t.Fatal(problems, err)
	}
	return c
}

// vipsOf are all VIPs of a cluster.
func vipsOf(c *render.Cluster) (out []netip.Addr) {
	for _, g := range c.Config.Spec.Groups {
		out = append(out, g.VIPs...)
	}
	return out
}

// planOf returns a plan with numbers of control-plane nodes and workers, and more machines.
func planOf(masters, workers int, more ...Machine) *Plan {
	p := &Plan{Client: machine("client", "", 200), Site: machine("site", "", 250)}
	for i := range masters {
		p.Nodes = append(p.Nodes, machine(fmt.Sprintf("master-%d", i), v1alpha1.RoleMaster, 10+i))
	}
	for i := range workers {
		p.Nodes = append(p.Nodes, machine(fmt.Sprintf("worker-%d", i), v1alpha1.RoleWorker, 20+i))
	}
	p.Nodes = append(p.Nodes, more...)
	return p
}

func machine(name, role string, n int) Machine {
	return Machine{Name: name, Role: role, Addresses: []netip.Prefix{
		netip.MustParsePrefix(fmt.Sprintf("192.0.2.%d/24", n)),
		netip.MustParsePrefix(fmt.Sprintf("2001:db8::%d/64", n)),
	}}
}

const rbac = "/apis/rbac.authorization.k8s.io/v1/"

// create, patch and remove change objects as cluster administrator.
func (c *cluster) create(collection, object string) {
	c.t.Helper()
	c.must(c.API.Create(c.t.Context(), collection, []byte(object)))
}

func (c *cluster) patch(path, patch string) {
	c.t.Helper()
	c.must(c.API.Patch(c.t.Context(), path, []byte(patch)))
}

func (c *cluster) remove(path string) {
	c.t.Helper()
	c.must(c.API.Delete(c.t.Context(), path))
}

func (c *cluster) must(err error) {
	c.t.Helper()
	testkit.Must(c.t, err)
}

func (c *cluster) masters() (out []*node) {
	for _, n := range c.nodes {
		if n.API != nil {
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

// began is the start of the test program.
var began = time.Now()

// show prints a command and its output, for runs with -v.
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
