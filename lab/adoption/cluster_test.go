package adoption

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
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

// goldenCase has the pods and templates that vipgen renders for nodes.
const goldenCase = "../../golden/cases/baremetal-usermanaged/expected/files/"

// host returns the address of a host.
func host(n int) netip.Prefix { return netip.MustParsePrefix(fmt.Sprintf("192.168.111.%d/24", n)) }

// node is a node of a cluster that runs the agent as in its pod.
type node struct {
	*daemon.Host
	t      *testing.T
	name   string
	role   string
	server kubeapi.Server
}

// newNode makes a node with an API server and with the files that vipgen rendered, with config
// as cluster.yaml. It is neither registered nor running an agent yet.
func newNode(t *testing.T, network *netns.Network, a *apitest.API, name, role string, config []byte, addresses ...netip.Prefix) *node {
	t.Helper()
	ns, err := network.AddNode(name, addresses...)
	testkit.Must(t, err)
	n := &node{Host: daemon.NewHost(t, ns), t: t, name: name, role: role}
	n.Bind(testkit.Agent(t), "/vipgen/vipgen-agent")
	n.Write(v1alpha1.ClusterConfigPath, config)
	n.Write("/etc/hosts", []byte("127.0.0.1 localhost\n")) // as kubelet mounts it into pods
	n.Write(v1alpha1.ModeFile, testkit.ReadFile(t, goldenCase+"every-pool"+v1alpha1.ModeFile))
	n.Write(v1alpha1.KeepalivedTemplate, []byte(keepalived.Template))
	n.admit(a)
	return n
}

// admit replaces the node's API server and its credentials.
func (n *node) admit(a *apitest.API) {
	n.t.Helper()
	if n.server != nil {
		n.server.Kill()
	}
	n.server = a.Serve(n.Host, n.name)
}

// start starts the agent with the command line of the rendered pod.
func (n *node) start() {
	n.t.Helper()
	var pod struct {
		Spec struct {
			Containers []struct {
				Command []string `json:"command"`
			} `json:"containers"`
		} `json:"spec"`
	}
	testkit.Must(n.t, yaml.Unmarshal(testkit.ReadFile(n.t, goldenCase+n.role+v1alpha1.ManifestDir+"/keepalived.yaml"), &pod))
	n.Start([]string{"NODE_NAME=" + n.name}, pod.Spec.Containers[0].Command...)
}

// state returns what the job published; alive is false while it does not run.
func (n *node) state() (s state.Keepalived, alive bool) {
	n.t.Helper()
	dir, err := state.Open(n.Path(v1alpha1.RunDir))
	testkit.Must(n.t, err)
	defer dir.Close()
	p, err := state.Read[state.Keepalived](dir)
	testkit.Must(n.t, err)
	if p == nil {
		return s, false
	}
	return *p, true
}

// awaitState waits until the published state meets a condition.
func (n *node) awaitState(what string, ok func(state.Keepalived) bool) {
	n.t.Helper()
	testkit.Await(n.t, n.name+" to say: "+what, func() bool {
		s, alive := n.state()
		return alive && ok(s)
	})
}

func running(s state.Keepalived) bool { return s.Wanted && s.PID != 0 && s.Reloads > 0 }

// has reports whether the node has an address.
func (n *node) has(a netip.Addr) (has bool) {
	n.t.Helper()
	testkit.Must(n.t, n.Do(func() error {
		list, err := netdump.Addresses()
		has = slices.ContainsFunc(list, func(x netlink.Addr) bool { return x.IPNet != nil && netdump.IP(x) == a })
		return err
	}))
	return has
}

// awaitGone waits until the node has recorded on disk that there is no bootstrap host.
func (n *node) awaitGone() {
	n.t.Helper()
	testkit.Await(n.t, n.name+" to note that the bootstrap is gone", func() bool {
		data, err := os.ReadFile(n.Path("/etc/keepalived/.vipgen-nodes.json"))
		return err == nil && strings.Contains(string(data), `"gone":true`)
	})
}

// checked reports whether a node in the election of the API VIP has checked that its API server
// is ready.
func (n *node) checked() bool {
	n.t.Helper()
	s, alive := n.state()
	return !alive || !running(s) || slices.ContainsFunc(s.Facts, func(f state.Fact) bool { return f.Name == health.FactAPI && f.OK })
}

// all returns the names of the nodes.
func (m *mixed) all() []string { return slices.Sorted(maps.Keys(m.nodes)) }

// holders returns the nodes that have a VIP.
func (m *mixed) holders(vip netip.Addr) []string {
	m.t.Helper()
	return slices.DeleteFunc(m.all(), func(name string) bool { return !m.nodes[name].has(vip) })
}

// settled is the time without a change after which an election is over.
const settled = time.Second

// awaitHolder waits until a node holds the first VIP alone, after the first checks of all
// nodes: the first result about an API server moves the VIP once more.
func (m *mixed) awaitHolder(name string) {
	m.t.Helper()
	var last, unchecked []string
	since := time.Now()
	testkit.Await(m.t, name+" to hold the VIP alone", func() bool {
		now := m.holders(m.vips[0])
		unchecked = slices.DeleteFunc(m.all(), func(name string) bool { return m.nodes[name].checked() })
		if !slices.Equal(now, last) || len(unchecked) > 0 {
			last, since = now, time.Now()
		}
		return slices.Equal(last, []string{name}) && time.Since(since) >= settled
	}, func() string { return fmt.Sprintf("it is on %v; unlike their API servers: %v", last, unchecked) })
}
