package keepalived

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/netdump"
	"github.com/vipgen/vipgen/internal/testbed/apitest"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/kubeapi"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// layout is the network of a cluster and the golden case with what vipgen renders
// for it.
type layout struct {
	golden string
	hosts  string // with a placeholder for the number
	apiVIP netip.Addr
}

var (
	ipv4 = layout{"baremetal-usermanaged", "192.168.111.%d/24", netip.MustParseAddr("192.168.111.5")}
	ipv6 = layout{"ipv6", "2001:db8:1::%d/64", netip.MustParseAddr("2001:db8:1::5")}

	families = map[string]layout{"IPv4": ipv4, "IPv6": ipv6}
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
	list  *apitest.API
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
	return &cluster{layout: l, t: t, vip: l.apiVIP, nodes: map[string]*node{}, net: daemon.NewNetwork(t), list: apitest.NewAPI(t)}
}

// add creates a node whose address ends in n, with the files that vipgen rendered for its role,
// and an API server. It is neither registered nor running an agent yet.
func (c *cluster) add(name, role string, n int) *node {
	c.t.Helper()
	ns, err := c.net.AddNode(name, c.host(n))
	testkit.Must(c.t, err)
	host := daemon.NewHost(c.t, ns)
	host.Bind(testkit.Agent(c.t), "/vipgen/vipgen-agent")
	host.Write(v1alpha1.ClusterConfigPath, c.clusterConfig(c.t))
	host.Write("/etc/hosts", []byte("127.0.0.1 localhost\n")) // as kubelet mounts it into pods
	host.Write(v1alpha1.ModeFile, c.read(c.t, "every-pool"+v1alpha1.ModeFile))
	host.Write(v1alpha1.KeepalivedTemplate, []byte(keepalived.Template))
	node := &node{Host: host, t: c.t, name: name, role: role, address: c.host(n)}
	node.api = c.list.Serve(host, name)
	c.nodes[name] = node
	return node
}

// Settings that a node recorded last.
const (
	fastUnicast = `{"profile":"fast","mode":"unicast","version":3,"advertIntervalMS":100}`
	classicKept = `{"profile":"classic","mode":"unicast","version":2,"advertIntervalMS":1000}`
)

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

func (c *cluster) register(n *node) { c.list.SetNode(n.name, n.role, n.address.Addr().String()) }

func read(t *testing.T, path string) []byte {
	t.Helper()
	return ipv4.read(t, path)
}

// start starts the agent by the command line of the rendered keepalived pod.
func (n *node) start() {
	n.t.Helper()
	var pod struct {
		Spec struct{ Containers []struct{ Command []string } }
	}
	testkit.Must(n.t, yaml.Unmarshal(read(n.t, n.role+"/etc/kubernetes/manifests/keepalived.yaml"), &pod))
	n.agent = n.Start([]string{"NODE_NAME=" + n.name}, pod.Spec.Containers[0].Command...)
}

// state returns the published state of the job; alive is false while it does not run.
func (n *node) state() (s state.Keepalived, alive bool) {
	n.t.Helper()
	dir, err := state.Open(n.Path(v1alpha1.RunDir))
	testkit.Must(n.t, err)
	p, err := state.Read[state.Keepalived](dir)
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

// others are the nodes but one.
func (c *cluster) others(name string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(c.nodes)), func(n string) bool { return n == name })
}

// all are the nodes.
func (c *cluster) all() []string { return c.others("") }

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
	testkit.Must(n.t, n.api.Launch())
}

// settled is the time without a change after which an election is over.
const settled = time.Second

// holders are the nodes with the VIP, sorted.
func (c *cluster) holders() (out []string) {
	c.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(c.nodes)) {
		if len(c.nodes[name].linksWith(c.vip)) > 0 {
			out = append(out, name)
		}
	}
	return out
}

// holder waits until one of the nodes holds the VIP alone, after the first checks of all nodes:
// the first result about an API server moves the VIP once more.
func (c *cluster) holder(among ...string) string {
	c.t.Helper()
	last, since := "", time.Now()
	deadline := since.Add(testkit.Patience)
	for {
		now := strings.Join(c.holders(), ",")
		unchecked := slices.DeleteFunc(c.all(), func(name string) bool { return c.nodes[name].checked() })
		if now != last || len(unchecked) > 0 {
			last, since = now, time.Now()
		}
		if slices.Contains(among, last) && time.Since(since) >= settled {
			return last
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("no single holder of %v among %v within %v; now: [%s]; unlike their API servers: %v", c.vip, among, testkit.Patience, last, unchecked)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// checked reports whether a node in the election of the API VIP has checked its API
// server.
func (n *node) checked() bool {
	n.t.Helper()
	s, alive := n.state()
	if !alive || !running(s) {
		return true
	}
	i := slices.IndexFunc(s.Facts, func(f state.Fact) bool { return f.Name == health.FactAPI })
	if i < 0 {
		return false
	}
	if n.stopping != nil {
		return !s.Facts[i].OK
	}
	if s.Facts[i].OK {
		return true
	}
	conn, err := n.DialContext(n.t.Context(), "tcp", "127.0.0.1:6443")
	if err == nil {
		conn.Close()
	}
	return err != nil // the agent is stopped
}

// migrateSoon plans a migration on all nodes, and waits until they agree. Nodes of a busy machine
// that could not agree in time get a later time, as the agent demands.
func (c *cluster) migrateSoon(file string) {
	c.t.Helper()
	missed := true
	for lead := 25 * time.Second; missed; lead *= 2 {
		missed = false
		at := time.Now().Add(lead).UTC().Truncate(time.Second)
		text := at.Format(time.RFC3339)
		for _, n := range c.nodes {
			n.Write(v1alpha1.UserModeFile, fmt.Appendf(nil, "%stime: %s\n", file, text))
		}
		for _, n := range c.nodes {
			n.awaitState("all have agreed on "+text, func(s state.Keepalived) bool {
				m := s.Migration
				missed = missed || m != nil && strings.Contains(m.WaitsFor, text+" passed before all nodes had agreed")
				return s.Migrations.Migrated > 0 || m != nil && m.Agreed && m.At.Equal(at) || missed
			})
		}
	}
}
