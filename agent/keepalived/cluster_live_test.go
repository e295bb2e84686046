package keepalived

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/netdump"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/kubeapi"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// layout is the network of a cluster and the golden case with what vipgen renders
// for it.
type layout struct {
	golden          string
	hosts           string // with a placeholder for the number
	apiVIP, ingress netip.Addr
}

var (
	ipv4 = layout{"baremetal-usermanaged", "192.168.111.%d/24", netip.MustParseAddr("192.168.111.5"), netip.MustParseAddr("192.168.111.4")}
	ipv6 = layout{"ipv6", "2001:db8:1::%d/64", netip.MustParseAddr("2001:db8:1::5"), netip.MustParseAddr("2001:db8:1::4")}
)

// apiVIP is the API VIP of most clusters in tests.
var apiVIP = ipv4.apiVIP

// host returns the address of a host.
func (l layout) host(n int) netip.Prefix { return netip.MustParsePrefix(fmt.Sprintf(l.hosts, n)) }

// read returns the content of a rendered file.
func (l layout) read(t *testing.T, path string) []byte {
	t.Helper()
	return testkit.ReadFile(t, "../../golden/cases/"+l.golden+"/expected/files/"+path)
}

// clusterConfig is the rendered cluster.yaml with the address of the test's bootstrap host.
func (l layout) clusterConfig(t *testing.T) []byte {
	t.Helper()
	return append(l.read(t, "every-pool"+v1alpha1.ClusterConfigPath),
		fmt.Sprintf("  peers:\n  - {name: bootstrap, role: bootstrap, addresses: [%q]}\n", l.host(10).Addr())...)
}

// cluster is a set of nodes on one network.
type cluster struct {
	layout
	t     *testing.T
	vip   netip.Addr // the VIP whose holders are observed
	list  *daemon.API
	nodes map[string]*node
	net   *netns.Network
}

// node runs the agent as its pod does.
type node struct {
	*daemon.Host
	t       *testing.T
	name    string
	role    string
	address netip.Prefix
	agent   *daemon.Process

	api      kubeapi.Server
	stopping func() // ends the API server; nil unless it is unready
}

func newCluster(t *testing.T) *cluster { return newClusterOf(t, ipv4) }

func newClusterOf(t *testing.T, l layout) *cluster {
	t.Helper()
	return &cluster{layout: l, t: t, vip: l.apiVIP, nodes: map[string]*node{}, net: daemon.NewNetwork(t), list: daemon.NewAPI(t)}
}

// add creates a node whose address ends in n, with the files that vipgen rendered for its role,
// and an API server. It is neither registered nor running an agent yet.
func (c *cluster) add(name, role string, n int) *node {
	c.t.Helper()
	return c.addAt(name, role, c.host(n))
}

// addAt is add with explicit addresses, the node's own first.
func (c *cluster) addAt(name, role string, addresses ...netip.Prefix) *node {
	c.t.Helper()
	ns, err := c.net.AddNode(name, addresses...)
	testkit.Must(c.t, err)
	host := daemon.NewHost(c.t, ns)
	host.Bind(testkit.Agent(c.t), "/vipgen/vipgen-agent")
	host.Write(v1alpha1.ClusterConfigPath, c.clusterConfig(c.t))
	host.Write("/etc/hosts", []byte("127.0.0.1 localhost\n")) // as kubelet mounts it into pods
	host.Write(v1alpha1.ModeFile, c.read(c.t, "every-pool"+v1alpha1.ModeFile))
	host.Write(v1alpha1.KeepalivedTemplate, []byte(keepalived.Template))
	node := &node{Host: host, t: c.t, name: name, role: role, address: addresses[0]}
	node.join(c.list)
	c.nodes[name] = node
	return node
}

// fastUnicast are the settings that a node recorded last.
const fastUnicast = `{"profile":"fast","mode":"unicast","version":3,"advertIntervalMS":100}`

// controlPlane adds and starts registered control-plane nodes cp-1 to cp-n that took part
// before, and so skip the join delay.
func (c *cluster) controlPlane(n int) {
	c.t.Helper()
	var added []*node
	for i := range n {
		added = append(added, c.add(fmt.Sprintf("cp-%d", i+1), "master", 11+i))
		c.register(added[i])
	}
	for _, n := range added {
		n.Write(keptSettings, []byte(fastUnicast))
		n.start()
	}
}

// awaitRunning waits until keepalived runs on all nodes.
func (c *cluster) awaitRunning() {
	c.t.Helper()
	for _, name := range c.all() {
		c.nodes[name].awaitState("it runs", running)
	}
}

func (c *cluster) register(n *node) { c.list.SetNode(n.name, n.role, n.address.Addr().String()) }

func read(t *testing.T, path string) []byte {
	t.Helper()
	return ipv4.read(t, path)
}

// commandOf is a command line of the rendered keepalived pod.
func commandOf(t *testing.T, role string, probe bool) []string {
	t.Helper()
	var pod struct {
		Spec struct {
			Containers []struct {
				Command       []string `json:"command"`
				LivenessProbe struct {
					Exec struct {
						Command []string `json:"command"`
					} `json:"exec"`
				} `json:"livenessProbe"`
			} `json:"containers"`
		} `json:"spec"`
	}
	testkit.Must(t, yaml.Unmarshal(read(t, role+"/etc/kubernetes/manifests/keepalived.yaml"), &pod))
	if probe {
		return pod.Spec.Containers[0].LivenessProbe.Exec.Command
	}
	return pod.Spec.Containers[0].Command
}

// start starts the agent.
func (n *node) start() {
	n.t.Helper()
	n.agent = n.Start([]string{"NODE_NAME=" + n.name}, commandOf(n.t, n.role, false)...)
}

// probe runs the pod's liveness probe.
func (n *node) probe() (string, error) { return n.Run(nil, commandOf(n.t, n.role, true)...) }

// dir is the directory that the node's jobs share.
func (n *node) dir() *state.Dir {
	n.t.Helper()
	d, err := state.Open(n.Path(v1alpha1.RunDir))
	testkit.Must(n.t, err)
	return d
}

// state returns the published state of the job; alive is false while it does not run.
func (n *node) state() (s state.Keepalived, alive bool) {
	n.t.Helper()
	p, err := state.Read[state.Keepalived](n.dir())
	testkit.Must(n.t, err)
	if p == nil {
		return s, false
	}
	return *p, true
}

// awaitState waits until the published state meets a condition.
func (n *node) awaitState(what string, ok func(state.Keepalived) bool) (s state.Keepalived) {
	n.t.Helper()
	testkit.Await(n.t, n.name+" to say: "+what, func() bool {
		var alive bool
		s, alive = n.state()
		return alive && ok(s)
	})
	return s
}

func running(s state.Keepalived) bool { return s.Wanted && s.PID != 0 && s.Reloads > 0 }

func isLeftOut(why string) func(state.Keepalived) bool {
	return func(s state.Keepalived) bool {
		return !s.Wanted && slices.ContainsFunc(s.LeftOut, func(i string) bool { return strings.Contains(i, why) })
	}
}

// linksWith returns the node's links that have an address, with its prefix.
func (n *node) linksWith(a netip.Addr) (found []string) {
	n.t.Helper()
	err := n.Do(func() error {
		list, err := nodeAddresses()
		for _, x := range list {
			if netdump.IP(x) == a {
				found = append(found, nameOf(x.LinkIndex))
			}
		}
		return err
	})
	testkit.Must(n.t, err)
	return found
}

// serve answers every request to a port of loopback with 200, until it is stopped.
func (n *node) serve(port int) (stop func()) {
	n.t.Helper()
	l := listen(n.t, n.Node, fmt.Sprintf("127.0.0.1:%d", port))
	s := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	go s.Serve(l)
	n.t.Cleanup(func() { s.Close() })
	return func() { s.Close() }
}

// processes returns the processes in the node's network.
func (n *node) processes() []string {
	n.t.Helper()
	out, err := exec.Command("ip", "netns", "pids", n.Namespace()).Output()
	testkit.Must(n.t, err)
	// This process is in the namespace briefly.
	return slices.DeleteFunc(strings.Fields(string(out)), func(pid string) bool { return pid == strconv.Itoa(os.Getpid()) })
}

// awaitProcesses waits for the given number of processes on the node: the agent alone, or with
// keepalived and its worker. Short-lived ones, such as keepalived's parser, have ended then,
// and so have those that were stopped.
func (n *node) awaitProcesses(want int) {
	n.t.Helper()
	var are []string
	testkit.Await(n.t, fmt.Sprintf("%d processes on %s", want, n.name), func() bool {
		are = n.processes()
		return len(are) == want
	}, func() string { return fmt.Sprintf("there are %v", are) })
}

// workers returns the children of a process.
func workers(t *testing.T, pid int) (out []int) {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	testkit.Must(t, err)
	for _, l := range lists {
		data, _ := os.ReadFile(l)
		for _, f := range strings.Fields(string(data)) {
			child, err := strconv.Atoi(f)
			testkit.Must(t, err)
			out = append(out, child)
		}
	}
	return out
}

// others are the nodes but one.
func (c *cluster) others(name string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(c.nodes)), func(n string) bool { return n == name })
}

// all are the nodes.
func (c *cluster) all() []string { return c.others("") }

func listen(t *testing.T, node *netns.Node, address string) (l net.Listener) {
	t.Helper()
	err := node.Do(func() (err error) {
		l, err = net.Listen("tcp", address)
		return err
	})
	testkit.Must(t, err)
	return l
}

// join replaces the node's API server and credentials.
func (n *node) join(a *daemon.API) {
	n.t.Helper()
	if n.api != nil {
		n.api.Kill()
	}
	n.api = a.Serve(n.Host, n.name)
}

// launch starts the node's API server again.
func (n *node) launch() {
	n.t.Helper()
	testkit.Must(n.t, n.api.Launch())
}

// unready makes the node's API server report its shutdown at /readyz and serve all else, until
// ready restarts it.
func (n *node) unready() {
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		n.api.Stop(ctx)
	}()
	n.stopping = func() { end(); <-ended }
}

func (n *node) ready() {
	n.t.Helper()
	n.stopping()
	n.stopping = nil
	n.launch()
}
