package keepalived

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	runner "github.com/vipgen/vipgen/agent/daemon"
	"github.com/vipgen/vipgen/agent/guard"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/apitest"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/process"
	"github.com/vipgen/vipgen/internal/testkit"
	templates "github.com/vipgen/vipgen/templates/keepalived"
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

// TestHardCase35PeersChange: new peers are admitted at once, and former ones until keepalived
// has had time to remove them; the next agent removes the rules of one that was killed.
func TestHardCase35PeersChange(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	host := daemon.NewHost(t, daemon.AddNode(t, daemon.NewNetwork(t), "node", "192.168.111.11/24"))
	g := guardState{log: slog.New(slog.DiscardHandler)}
	group := func(peers ...string) []guard.Group {
		i := templates.Instance{Interface: "eth0", RouterID: 97, VIP: netip.PrefixFrom(apiVIP, 32), FullTTL: true, OnLink: true, AllKnown: true}
		for _, p := range peers {
			i.Peers = append(i.Peers, netip.MustParseAddr(p))
		}
		return guardGroups([]templates.Instance{i}, nil)
	}
	letThrough := func(when string, want ...string) {
		t.Helper()
		out, _ := host.Run(nil, "nft", "list", "table", "inet", guard.TableName)
		for _, a := range []string{"192.168.111.12", "192.168.111.13", "192.168.111.14"} {
			testkit.Equal(testkit.In(t, when, a, out), slices.Contains(want, a), strings.Contains(out, a))
		}
	}
	err := host.Do(func() error {
		now := time.Now()
		g.admit(group("192.168.111.12"))
		letThrough("at first", "192.168.111.12")
		g.applied(now)
		g.admit(group("192.168.111.13"))
		g.poll(now.Add(time.Hour))
		letThrough("before the reload", "192.168.111.12", "192.168.111.13")
		g.admit(group("192.168.111.14")) // the previous configuration was refused
		letThrough("before the next reload", "192.168.111.12", "192.168.111.13", "192.168.111.14")
		g.applied(now)
		g.poll(now.Add(guardLag - 1))
		letThrough("after the reload", "192.168.111.12", "192.168.111.13", "192.168.111.14")
		g.poll(now.Add(guardLag))
		letThrough("later", "192.168.111.14")
		next := guardState{log: g.log}
		next.begin()
		letThrough("with the next agent")
		next.admit(group("192.168.111.12"))
		next.end()
		letThrough("at the end")
		return nil
	})
	testkit.Must(t, err)
}

// The link has two prefixes, and kubelet's addresses are not in that of the VIP: nodes that
// start beside the operator's keepalived send from kubelet's addresses, and from those of the
// VIP's prefix after the migration, without a split brain at any time. Where the cluster does
// not list these, they keep kubelet's.
func TestHardCase46Move(t *testing.T) {
	testkit.Live(t)
	for name, annotated := range map[string]bool{"annotated": true, "not annotated": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClusterOf(t, ipv6)
			kubelets := func(n int) netip.Prefix { return netip.MustParsePrefix(fmt.Sprintf("fd99:7::%d/64", n)) }
			for n := 11; n <= 13; n++ {
				x := c.add(fmt.Sprintf("cp-%d", n-10), "master", n)
				testkit.Must(t, x.AddAddress("eth0", kubelets(n)))
				c.list.SetNode(x.name, x.role, kubelets(n).Addr().String())
				if annotated {
					c.list.Patch(apitest.NodesPath+"/"+x.name, apitest.Object{"metadata": apitest.Object{"annotations": apitest.Object{
						"k8s.ovn.org/host-cidrs": fmt.Sprintf("[%q,%q]", x.address, kubelets(n)),
					}}})
				}
				x.Write(keptSettings, []byte(classicKept))
			}
			stop := c.neverTwo()
			for _, name := range c.all() {
				c.nodes[name].start()
			}
			sends := func(profile string, from netip.Prefix) func(state.Keepalived) bool {
				return func(s state.Keepalived) bool {
					return running(s) && s.VRRP != nil && string(s.VRRP.Profile) == profile && len(s.Instances) > 0 &&
						len(s.Instances[0].Peers) >= 2 && from.Contains(s.Instances[0].Source)
				}
			}
			for _, name := range c.all() {
				c.nodes[name].awaitState("it sends from kubelet's address", sends("classic", kubelets(0)))
			}
			first := c.holder(c.all()...)
			c.migrateSoon("profile: fast\n")
			to := kubelets(0)
			if annotated {
				to = c.host(1)
			}
			for _, name := range c.all() {
				s := c.nodes[name].awaitState("it has moved", sends("fast", to))
				if s.Migrations.Migrated != 1 || s.Migrations.RolledBack != 0 {
					t.Errorf("%s: %+v", name, s.Migrations)
				}
			}
			if now := c.holder(c.all()...); now != first {
				t.Logf("the VIP moved from %s to %s", first, now)
			}
			stop()
		})
	}
}

// neverTwo fails the test if two nodes hold the VIP at any time until the returned function is
// called, except for as long as a late machine explains. All nodes exist already.
func (c *cluster) neverTwo() (stop func()) {
	end := make(chan struct{})
	var watching sync.WaitGroup
	watch := testkit.StartStopwatch()
	var longest time.Duration
	var who []string
	watching.Go(func() {
		look := time.NewTicker(10 * time.Millisecond)
		defer look.Stop()
		var began time.Time
		for {
			select {
			case <-end:
				return
			case <-look.C:
			}
			now, holders := time.Now(), c.holders()
			switch {
			case len(holders) < 2:
				began = time.Time{}
			case began.IsZero(): // reading all nodes takes a moment, in which the VIP may move
				began = now
			case now.Sub(began) > longest:
				longest, who = now.Sub(began), holders
			}
		}
	})
	stop = sync.OnceFunc(func() {
		close(end)
		watching.Wait()
		testkit.Promise(c.t, fmt.Sprintf("split brain of %v", who), longest, 0, lateSplitBrain, watch.End())
	})
	c.t.Cleanup(stop)
	return stop
}

// lateSplitBrain is the split brain that a late machine explains: a holder without CPU time for
// its advertisements receives those of its successor, once a second with classic, when it runs
// again.
const lateSplitBrain = 2 * time.Second

// One of two control-plane nodes is registered: it leaves the VIP to the bootstrap host, which
// gives it up with its API server (HardCase08), holds it alone when that is gone, and still when the
// other node joins. Only the annotation of the ConfigMap has the bootstrap host's address.
func TestHardCase13OneOfTwo(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	c := newCluster(t)
	boot, first, second := c.add("bootstrap", "bootstrap", 10), c.add("cp-1", "master", 11), c.add("cp-2", "master", 12)
	two := bytes.Replace(read(t, "every-pool"+v1alpha1.ClusterConfigPath), []byte("replicas: 3"), []byte("replicas: 2"), 1)
	for _, n := range []*node{boot, first, second} {
		n.Write(v1alpha1.ClusterConfigPath, two)
	}
	defer c.neverTwo()()
	boot.start()
	c.holder("bootstrap")
	c.register(first)
	first.start()
	first.awaitState("nobody else is known", isLeftOut("no other control-plane node"))
	boot.awaitState("it knows the first", func(s state.Keepalived) bool { return len(s.Instances) == 1 && len(s.Instances[0].Peers) == 1 })

	c.list.SetBootstrap("192.168.111.10")
	first.awaitState("the bootstrap is a peer", func(s state.Keepalived) bool {
		return running(s) && len(s.Instances) == 1 && len(s.Instances[0].Peers) == 1
	})
	c.holder("bootstrap")

	boot.unready()
	boot.awaitState("it is over", isLeftOut("has gone"))
	c.holder("cp-1")
	c.list.SetBootstrap("")
	first.awaitGone()
	alone := first.awaitState("it runs on", running)
	c.holder("cp-1")

	c.register(second)
	second.start()
	second.awaitState("it runs", running)
	both := first.awaitState("the other is a peer", func(s state.Keepalived) bool {
		conf, err := os.ReadFile(first.Path(v1alpha1.KeepalivedConf))
		return err == nil && strings.Contains(string(conf), "192.168.111.12 min_ttl 255") && len(s.Instances) == 1
	})
	c.holder("cp-1")
	if both.PID != alone.PID || both.Restarts != 0 {
		t.Errorf("keepalived was started again: %+v, %+v", alone, both)
	}

	// The second node never knew the bootstrap host, which does not return while that node is
	// there.
	boot.ready()
	boot.awaitState("it stays out", isLeftOut("does without this bootstrap host"))
	first.agent.Kill()
	c.holder("cp-2")
}

// awaitGone waits until the node has recorded on disk that there is no bootstrap host.
func (n *node) awaitGone() {
	n.t.Helper()
	testkit.Await(n.t, n.name+" to note that the bootstrap is gone", func() bool {
		data, err := os.ReadFile(n.Path(keepDir + "/.vipgen-nodes.json"))
		return err == nil && strings.Contains(string(data), `"gone":true`)
	})
}

// A configuration that changes while keepalived starts is in force afterwards, whenever it
// changes, and keepalived is not restarted for it.
func TestHardCase42ReloadWhileItStarts(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	node := daemon.AddNode(t, daemon.NewNetwork(t), "node", "192.168.111.11/24")
	root := t.TempDir()
	conf, program := filepath.Join(root, "keepalived.conf"), filepath.Join(root, "keepalived")
	script := "#!/bin/sh\nexec ip netns exec " + node.Namespace() + " " + testkit.Program(t, "keepalived") + " \"$@\"\n"
	testkit.Must(t, process.WriteProgram(program, []byte(script)))
	nothing := func(context.Context) error { return nil }
	for i := range 12 {
		d := newDaemon(t.Context(), program, root, conf, nothing, nothing, slog.New(slog.DiscardHandler))
		d.Check = func(context.Context, string) error { return nil } // takes time, in which keepalived would start
		apply := func(router int) {
			t.Helper()
			text := "vrrp_instance V {\n interface eth0\n virtual_router_id " + strconv.Itoa(router) + "\n priority 100\n virtual_ipaddress { 192.168.111.5 }\n}\n"
			if changed, err := d.Apply(t.Context(), runner.Target{Conf: []byte(text)}); !changed || err != nil {
				t.Fatalf("changed: %t, %v", changed, err)
			}
		}
		apply(1)
		if i%2 == 0 { // at once, or after the duration of a reload
			testkit.Await(t, "a process", func() bool { return d.Process.PID() != 0 })
		}
		apply(2)
		before := d.Process.PID()
		testkit.Await(t, "keepalived to run the second configuration", func() bool {
			pid := d.Process.PID()
			if d.Process.Restarts() > 0 {
				t.Fatalf("try %d: keepalived was ended, process %d", i, before)
			}
			if _, err := os.Stat(filepath.Join(root, vrrpPID)); err != nil || pid == 0 {
				return false
			}
			os.Remove(dumpFile)
			syscall.Kill(pid, syscall.SIGUSR1)
			data, err := os.ReadFile(dumpFile)
			return err == nil && strings.Contains(string(data), "Virtual Router ID = 2")
		})
		d.Close()
	}
}
