package agents

import (
	"context"
	"net/netip"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/testbed/container"
	"github.com/vipgen/vipgen/lab/testbed/host"
)

// node is a node of a network, with a file system.
type node struct {
	*host.Host
	network *netns.Network
	t       *testing.T
}

func newNode(t *testing.T, addresses ...string) node {
	t.Helper()
	return nodeIn(t, daemon.NewNetwork(t), "master-0", addresses...)
}

// nodeIn adds a node to a network.
func nodeIn(t *testing.T, network *netns.Network, name string, addresses ...string) node {
	t.Helper()
	h, err := host.New(daemon.AddNode(t, network, name, addresses...), t.TempDir())
	testkit.Must(t, err)
	testkit.Cleanup(t, h.Close)
	cluster := testkit.ReadFile(t, "../../cmd/agentcli/testdata/cluster.yaml")
	n := node{h, network, t}
	n.put(v1alpha1.ClusterConfigPath, string(cluster))
	return n
}

func (n node) address(addrs ...string) {
	n.t.Helper()
	for _, a := range addrs {
		testkit.Must(n.t, n.AddAddress("eth0", netip.MustParsePrefix(a)))
	}
}

// put writes a file of the node, or replaces it in one step.
func (n node) put(path, data string) {
	n.t.Helper()
	testkit.Must(n.t, n.Write(path, []byte(data)))
}

// expect compares a file of the node.
func (n node) expect(path, want string) {
	n.t.Helper()
	if got, err := n.Read(path); err != nil || string(got) != want {
		n.t.Errorf("%s holds %q (%v), want %q", path, got, err, want)
	}
}

// images are made of this machine's programs; the agent's holds the agent alone. Each is named
// after its program.
func images(t *testing.T) map[string]container.Image {
	t.Helper()
	return map[string]container.Image{
		agentImage: {Programs: map[string]string{"/usr/bin/vipgen-agent": testkit.Agent(t)}},
		"haproxy":  {Distribution: true, BindService: []string{"/usr/sbin/haproxy"}},
		"coredns":  {Distribution: true, Programs: map[string]string{"/coredns": testkit.Tool(t, "coredns")}},
	}
}

const agentImage = "agent"

// run runs a container to its end.
func (n node) run(cfg container.Config) (out, errOut string, code int) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), waitTime)
	defer cancel()
	r, err := container.Run(ctx, n.Host, cfg)
	testkit.Must(n.t, err)
	return r.Out, r.Err, r.Code
}
