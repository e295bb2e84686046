package keepalived

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

// queue returns how many bytes may wait for an unresolved neighbour on the node's link.
func (n *node) queue(iface string, ipv6 bool) (bytes int) {
	n.t.Helper()
	family := "ipv4"
	if ipv6 {
		family = "ipv6"
	}
	testkit.Must(n.t, n.Do(func() error {
		data, err := os.ReadFile("/proc/sys/net/" + family + "/neigh/" + iface + "/unres_qlen_bytes")
		if err == nil {
			_, err = fmt.Sscan(string(data), &bytes)
		}
		return err
	}))
	return bytes
}

// Advertisements continue to dead peers: one that is only cut off from the API would otherwise
// take the VIP. However many there are, the living ones receive theirs. The kernel's previous
// limits are restored when the agent ends, and kept on disk for when it is killed.
func TestDeadPeersDelayNoAdverts(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	for name, l := range families {
		t.Run(name, func(t *testing.T) { testDeadPeers(t, l) })
	}
}

func testDeadPeers(t *testing.T, l layout) {
	const dead = 60
	c := newClusterOf(t, l)
	c.controlPlane(2)
	holder := c.nodes[c.holder(c.all()...)]
	other := c.nodes[c.others(holder.name)[0]]
	usual := holder.queue("lo", l.apiVIP.Is6()) // where the agent sets no limit
	defer c.neverTwo()()
	for i := range dead {
		c.list.SetNode(fmt.Sprintf("cp-x%d", i), "master", l.host(100+i).Addr().String())
	}
	for _, name := range c.all() {
		n := c.nodes[name]
		n.awaitState("all are peers", func(s state.Keepalived) bool {
			conf, err := os.ReadFile(n.Path(v1alpha1.KeepalivedConf))
			return err == nil && strings.Count(string(conf), "min_ttl") == dead+2 && s.Problem == ""
		})
	}
	c.holder(holder.name)
	bound := holder.queue("eth0", l.apiVIP.Is6())
	if bound >= usual {
		t.Errorf("%d bytes may wait for each neighbour, as before", bound)
	}
	holder.agent.Stop()
	c.holder(other.name)
	testkit.Equal(t, usual, holder.queue("eth0", l.apiVIP.Is6()))
	holder.start()
	holder.awaitState("it runs", running)
	holder.agent.Kill()
	testkit.Await(t, "nothing to be left", func() bool { return len(holder.processes()) == 0 })
	testkit.Equal(t, bound, holder.queue("eth0", l.apiVIP.Is6()))
	holder.start()
	holder.awaitState("it runs", running)
	holder.agent.Stop()
	testkit.Equal(t, usual, holder.queue("eth0", l.apiVIP.Is6()))
	c.holder(other.name)
	for _, name := range c.all() {
		lines := slices.Collect(strings.Lines(c.nodes[name].agent.Output()))
		if i := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, "Cant send advert") }); i >= 0 {
			t.Errorf("%s: %s", name, lines[i])
		}
	}
}
