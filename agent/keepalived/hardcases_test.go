package keepalived

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

// A VIP that an unclean exit left is removed before keepalived starts, also one of an earlier
// cluster.yaml: from every interface, with any prefix length, and without the node's own address,
// which the kernel removes along with the first address of its network.
func TestHardCase01StaleVIP(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	c := newCluster(t)
	c.controlPlane(2)
	holder := c.holder(c.all()...)

	stale := c.add("cp-3", "master", 13)
	c.register(stale)
	testkit.Run(t, stale.Command(t.Context(), "ip", "address", "delete", stale.address.String(), "dev", "eth0"))
	earlier := c.host(7).Addr()
	stale.Write(keptVIPs, []byte(`["`+earlier.String()+`"]`))
	testkit.Must(t, stale.AddLink("eth1", netip.PrefixFrom(apiVIP, 32), netip.PrefixFrom(earlier, 32)))
	for _, p := range []netip.Prefix{netip.PrefixFrom(apiVIP, 24), stale.address} {
		testkit.Must(t, stale.AddAddress("eth0", p))
	}
	if got := stale.linksWith(apiVIP); len(got) != 2 {
		t.Fatalf("the VIP is on %v", got)
	}
	stale.start()
	stale.awaitState("it runs", running)
	c.holder(holder)
	testkit.Empty(t, stale.linksWith(earlier))
	testkit.Equal(t, []string{"eth0"}, stale.linksWith(stale.address.Addr()))
	if !strings.Contains(stale.agent.Output(), "address removed with a VIP restored") {
		t.Error("the node's own address did not go with the VIP: this proves nothing")
	}
}

// A control-plane node without peers takes no part until it has one, and keeps its VIP when they
// are deleted, until it starts again; the bootstrap host may be alone.
func TestHardCase02NoPeers(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	c := newCluster(t)
	lone := c.add("cp-1", "master", 11)
	lone.Write(v1alpha1.ClusterConfigPath, read(t, "every-pool"+v1alpha1.ClusterConfigPath)) // which names no peer
	c.register(lone)
	c.list.SetNode("worker-1", "worker", "192.168.111.31")
	testkit.Must(t, lone.AddAddress("eth0", netip.PrefixFrom(apiVIP, 32)))
	lone.start()
	lone.awaitState("no peers", isLeftOut("no other control-plane node"))
	testkit.Await(t, "the VIP to be removed", func() bool { return len(lone.linksWith(apiVIP)) == 0 })
	lone.awaitProcesses(1)
	if out, err := lone.probe(); err != nil {
		t.Errorf("the probe of a keepalived that is not wanted: %v: %s", err, out)
	}

	c.list.SetNode("cp-2", "master", "192.168.111.12")
	c.holder("cp-1")
	c.list.RemoveNode("cp-2")
	testkit.Await(t, "the agent to read that", func() bool { return strings.Contains(lone.agent.Output(), "left=cp-2") })
	c.holder("cp-1")
	lone.agent.Stop()
	lone.start()
	lone.awaitState("no peers", isLeftOut("no other control-plane node"))

	boot := c.add("bootstrap", "bootstrap", 10)
	boot.start()
	c.holder("bootstrap")
}

// The bootstrap host holds the VIP until its API server has been ready and then is not, also
// over a restart of the agent; and again once that API server is ready again, as after etcd had
// no leader for a while.
func TestHardCase08Bootstrap(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	c := newCluster(t)
	boot := c.add("bootstrap", "bootstrap", 10)
	boot.unready()
	boot.start()
	c.holder("bootstrap") // the API server was never ready, so it is not gone either
	c.controlPlane(2)
	boot.ready()
	boot.awaitState("the API server is ready", func(s state.Keepalived) bool {
		return slices.ContainsFunc(s.Facts, func(f state.Fact) bool { return f.Name == "api" && f.OK })
	})
	c.holder("bootstrap")

	boot.unready() // and lists still work
	boot.awaitState("it is over", isLeftOut("has gone"))
	c.holder("cp-1", "cp-2")
	boot.awaitProcesses(1)
	if out, err := boot.probe(); err != nil {
		t.Errorf("the probe of a keepalived that has stopped: %v: %s", err, out)
	}
	boot.agent.Kill()
	boot.start()
	boot.awaitState("it is still over", isLeftOut("has gone"))
	c.holder("cp-1", "cp-2")
	stop := c.neverTwo()
	boot.ready()
	c.holder("bootstrap")
	stop()
}
