package keepalived

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

// A VIP that an unclean exit left is removed before keepalived starts: from every interface,
// with any prefix length, and without the node's own address, which the kernel removes along
// with the first address of its network.
func TestHardCase01StaleVIP(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	c := newCluster(t)
	c.controlPlane(2)
	holder := c.holder(c.all()...)

	stale := c.add("cp-3", "master", 13)
	c.register(stale)
	stale.removeAddress("eth0", stale.address)
	testkit.Must(t, stale.AddLink("eth1", netip.PrefixFrom(apiVIP, 32)))
	for _, p := range []netip.Prefix{netip.PrefixFrom(apiVIP, 24), stale.address} {
		testkit.Must(t, stale.AddAddress("eth0", p))
	}
	if got := stale.linksWith(apiVIP); len(got) != 2 {
		t.Fatalf("the VIP is on %v", got)
	}
	stale.start()
	stale.awaitState("it runs", running)
	c.holder(holder)
	testkit.Equal(t, []string{"eth0"}, stale.linksWith(stale.address.Addr()))
	if !strings.Contains(stale.agent.Output(), "address removed with a VIP restored") {
		t.Error("the node's own address did not go with the VIP: this proves nothing")
	}
}

// A killed keepalived leaves its VIP behind, and the cluster has another VIP when the next one
// starts.
func TestHardCase01PreviousVIP(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	c := newCluster(t)
	c.controlPlane(2)
	n := c.nodes[c.holder(c.all()...)]
	n.awaitState("it runs", running)
	n.killAtOnce()

	c.vip = c.host(7).Addr()
	fresh := strings.ReplaceAll(string(c.clusterConfig(t)), apiVIP.String()+"\n", c.vip.String()+"\n")
	for _, n := range c.nodes {
		n.Write(v1alpha1.ClusterConfigPath, []byte(fresh))
	}
	n.start()
	n.awaitState("it runs", running)
	testkit.Await(t, "the VIP of before to be removed", func() bool { return len(n.linksWith(apiVIP)) == 0 })
	c.holder(c.all()...)
}

// A control-plane node without peers takes no part until it has one; the bootstrap host may be
// alone.
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
	lone.awaitState("no peers", isLeftOut("no other control-plane node"))
	testkit.Await(t, "the VIP to go with the peers", func() bool { return len(lone.linksWith(apiVIP)) == 0 })

	boot := c.add("bootstrap", "bootstrap", 10)
	boot.start()
	c.holder("bootstrap")
}

// A node that is not in the list of nodes takes no part.
func TestHardCase03NotRegistered(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	c := newCluster(t)
	c.controlPlane(2)
	holder := c.holder(c.all()...)
	late := c.add("cp-3", "master", 13)
	late.start()
	late.awaitState("not registered", isLeftOut("not registered"))
	late.awaitProcesses(1)
	testkit.Lacks(t, late.agent.Output(), "daemon started")
	c.register(late)
	late.awaitState("it runs", running)
	c.holder(holder)

	c.list.RemoveNode(holder)
	c.nodes[holder].awaitState("not registered", isLeftOut("not registered"))
	c.holder(c.others(holder)...)
}

// The node's address moves to a bridge at run time, and the VIP with it.
func TestHardCase04InterfaceChanges(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.controlPlane(3)
	moved := c.nodes[c.holder(c.all()...)]
	before := moved.awaitState("it runs", running)
	moved.removeAddress("eth0", moved.address)
	testkit.Must(t, moved.AddLink("br-ex", moved.address))
	moved.awaitState("the instance is on br-ex", func(s state.Keepalived) bool {
		return len(s.Instances) == 1 && s.Instances[0].Interface == "br-ex" && s.Problem == "" && s.PID != 0
	})
	testkit.Await(t, "the new configuration to be on disk", func() bool {
		conf, err := os.ReadFile(moved.Path(v1alpha1.KeepalivedConf))
		return err == nil && strings.Contains(string(conf), "interface br-ex") && !strings.Contains(string(conf), "eth0")
	})
	c.holder(c.all()...)
	for _, other := range c.others(moved.name) {
		c.nodes[other].agent.Stop()
	}
	c.holder(moved.name)
	if got := moved.linksWith(apiVIP); !slices.Equal(got, []string{"br-ex"}) {
		t.Errorf("the VIP is on %v (before: %+v)", got, before.Instances)
	}
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

// A node whose address shares no network with a VIP runs no keepalived.
func TestHardCase09RemoteWorker(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	far := c.add("worker-1", "worker", 31)
	far.removeAddress("eth0", far.address)
	far.address = netip.MustParsePrefix("198.51.100.31/24")
	testkit.Must(t, far.AddAddress("eth0", far.address))
	cluster := strings.Replace(string(clusterConfig(t)),
		"  - 192.168.111.0/24", "  - 192.168.111.0/24\n  - 198.51.100.0/24", 1)
	far.Write(v1alpha1.ClusterConfigPath, []byte(cluster))
	c.register(far)
	c.list.SetNode("worker-2", "worker", "192.168.111.32")
	far.start()
	far.awaitState("it is remote", isLeftOut("no network with a VIP"))
	far.awaitProcesses(1)
	testkit.Lacks(t, far.agent.Output(), "daemon started")
}

// Hundreds of nodes that register at once cause a bounded number of reloads: none where they
// change nothing, few where they are peers.
func TestHardCase20NodesInABurst(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	c := newCluster(t)
	c.controlPlane(2)
	holder := c.holder(c.all()...)
	n := c.nodes[holder]
	before := n.awaitState("it runs", running)
	// All are alive: advertisements that wait for the link address of dead neighbours fill the
	// buffer of keepalived's socket.
	var crowd []netip.Prefix
	for i := range 50 {
		crowd = append(crowd, netip.MustParsePrefix(fmt.Sprintf("192.168.111.%d/24", i+100)))
	}
	if _, err := c.net.AddNode("crowd", crowd...); err != nil {
		t.Fatal(err)
	}
	for i := range 250 {
		c.list.SetNode(fmt.Sprintf("worker-%d", i), "worker", fmt.Sprintf("192.168.112.%d", i+1))
	}
	began := time.Now()
	for i, address := range crowd {
		c.list.SetNode(fmt.Sprintf("cp-x%d", i), "master", address.Addr().String())
		c.holders() // takes a moment, so that they register one after another
	}
	// The other node, the bootstrap and those 50.
	n.awaitState("all are peers", func(s state.Keepalived) bool { return len(s.Instances) == 1 && len(s.Instances[0].Peers) == 52 })
	after := n.awaitState("they are applied", func(s state.Keepalived) bool {
		conf, err := os.ReadFile(n.Path(v1alpha1.KeepalivedConf))
		return err == nil && strings.Count(string(conf), "min_ttl") == 52
	})
	// One per MinInterval, and one for what was in progress.
	most := 2 + int(time.Since(began)/(3*time.Second))
	if reloads := after.Reloads - before.Reloads; reloads > most {
		t.Errorf("%d reloads, want at most %d", reloads, most)
	}
	if after.Restarts != before.Restarts || after.PID != before.PID {
		t.Errorf("keepalived was started again: %+v, %+v", before, after)
	}
	c.holder(holder)
}

// Whichever process is killed, one node holds the VIP and nothing is left behind.
func TestHardCase24Kills(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	agent := func(n *node, _ state.Keepalived) { n.agent.Kill() }
	main := func(_ *node, s state.Keepalived) { syscall.Kill(s.PID, syscall.SIGKILL) }
	worker := func(n *node, s state.Keepalived) {
		for _, pid := range workers(n.t, s.PID) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	tests := []struct {
		name  string
		kill  []func(*node, state.Keepalived)
		moves bool // moves at once, since the agent is gone
	}{
		{"agent", []func(*node, state.Keepalived){agent}, true},
		{"keepalived", []func(*node, state.Keepalived){main}, false},
		{"the worker of keepalived", []func(*node, state.Keepalived){worker}, false},
		{"keepalived and its worker", []func(*node, state.Keepalived){worker, main}, false},
		{"agent and keepalived", []func(*node, state.Keepalived){agent, main}, true},
	}
	c := newCluster(t)
	c.controlPlane(3)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := c.nodes[c.holder(c.all()...)]
			before := n.awaitState("it runs", running)
			for _, kill := range tt.kill {
				kill(n, before)
			}
			if tt.moves {
				c.holder(c.others(n.name)...)
				testkit.Await(t, "nothing to be left", func() bool { return len(n.processes()) == 0 })
				n.start()
			}
			n.awaitState("a new keepalived runs", func(s state.Keepalived) bool { return running(s) && s.PID != before.PID })
			c.holder(c.all()...)
			n.awaitProcesses(3)
		})
	}
	t.Run("all at once, so that the VIP stays on the interface", func(t *testing.T) {
		n := c.nodes[c.holder(c.all()...)]
		n.awaitState("it runs", running)
		n.killAtOnce()
		n.start()
		c.holder(c.all()...)
	})
}

// A node keeps its name and changes its address at run time: it sends from the new one, and its
// peers send to it.
func TestHardCase15PeersFollowAddresses(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	c := newCluster(t)
	c.controlPlane(3)
	c.holder(c.all()...)
	moved := c.nodes["cp-3"]
	was := moved.address
	defer c.neverTwo()()
	moved.removeAddress("eth0", was)
	moved.address = netip.MustParsePrefix("192.168.111.33/24")
	testkit.Must(t, moved.AddAddress("eth0", moved.address))
	moved.awaitState("it is listed elsewhere", isLeftOut("lists this node at an address"))
	c.holder(c.others("cp-3")...)
	c.register(moved)
	says := func(n *node, what, not string) {
		t.Helper()
		testkit.Await(t, n.name+" to say "+what, func() bool {
			conf, err := os.ReadFile(n.Path(v1alpha1.KeepalivedConf))
			s, alive := n.state()
			return err == nil && alive && s.Problem == "" && s.PID != 0 &&
				strings.Contains(string(conf), what) && !strings.Contains(string(conf), not)
		})
	}
	says(moved, "unicast_src_ip 192.168.111.33", was.Addr().String())
	for _, other := range c.others("cp-3") {
		says(c.nodes[other], "192.168.111.33 min_ttl 255", was.Addr().String()+" ")
	}
	c.holder(c.all()...)
	for _, other := range c.others("cp-3") {
		c.nodes[other].agent.Stop()
	}
	c.holder("cp-3")
}
