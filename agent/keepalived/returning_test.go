package keepalived

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
)

const classicKept = `{"profile":"classic","mode":"unicast","version":2,"advertIntervalMS":1000}`

// newMembers starts three control-plane nodes that took part before, according to their files.
func newMembers(t *testing.T, l layout, kept, mode string) *cluster {
	t.Helper()
	c := newClusterOf(t, l)
	for i := range 3 {
		c.mover(fmt.Sprintf("cp-%d", i+1), 11+i, kept, mode)
	}
	return c
}

// inForceEverywhere are settings of a cluster with the corresponding mode file.
var inForceEverywhere = map[string][2]string{
	"fast":    {unicastKept, ""},
	"classic": {classicKept, "mode: unicast\nprofile: classic\n"},
}

// triesEach is how often the node returns with each family and profile.
const triesEach = 5

// A node that was deleted from the cluster while powered off, with expired credentials, is
// powered on: it never holds the VIP alongside the holder. Once it is a node of the cluster
// again, it takes part.
func TestHardCase36DeletedNodeReturns(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	tries := 0
	defer func() {
		if !t.Failed() {
			t.Logf("%d times a deleted node has returned, and never was there a split brain", tries)
		}
	}()
	for family, l := range families {
		for profile, x := range inForceEverywhere {
			t.Run(family+" "+profile, func(t *testing.T) {
				leaveIPv6(t, l)
				c := newMembers(t, l, x[0], x[1])
				c.holder(c.all()...)
				gone := c.nodes["cp-3"]
				gone.awaitState("it runs", running)
				testkit.Await(t, "the list on its disk", func() bool {
					return strings.Contains(gone.file(keepDir+"/.vipgen-nodes.json"), "cp-1")
				})
				gone.agent.Stop()
				c.list.RemoveNode(gone.name)
				for _, other := range c.others(gone.name) {
					n := c.nodes[other]
					testkit.Await(t, other+" to forget it", func() bool {
						return !strings.Contains(n.file(v1alpha1.KeepalivedConf), gone.address.Addr().String())
					})
				}
				holder, machine := c.holder(c.others(gone.name)...), testkit.StartStopwatch()
				t.Cleanup(func() { machine.End() })
				c.list.Expire(gone.Host, gone.name)
				defer c.neverTwo()()
				for range triesEach { // each time with its old files
					gone.start()
					gone.awaitState("it is in doubt", isLeftOut("no API server says that the cluster has it"))
					gone.agent.Stop()
				}
				tries += triesEach
				c.stayed("a deleted node returns", holder, []string{c.holder(c.all()...)}, machine.End())
				gone.start()
				gone.awaitState("it is in doubt", isLeftOut("no API server says that the cluster has it"))
				c.list.Admit(gone.Host, gone.name)
				c.register(gone)
				gone.awaitState("it runs", running)
				c.holder(c.all()...)
			})
		}
	}
}

// cut cuts a node off from all API servers, while its own stays ready.
func cut(c *cluster, n *node) {
	c.list.Refuse(n.Host, n.name)
	n.api.Kill() // and with it the watches of all
	n.launch()
}

// countTwo measures how long a node holds the VIP at the same time as another one.
func (c *cluster) countTwo(name string) (stop func() time.Duration) {
	var all time.Duration
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		last := time.Now()
		for tick := time.NewTicker(20 * time.Millisecond); ; last = time.Now() {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			if h := c.holders(); len(h) > 1 && slices.Contains(h, name) {
				all += time.Since(last)
			}
		}
	}()
	return func() time.Duration { close(done); <-ended; return all.Round(10 * time.Millisecond) }
}

// file returns the content of a file of the node, empty if there is none.
func (n *node) file(path string) string {
	data, _ := os.ReadFile(n.Path(path))
	return string(data)
}

// Hard case 51: the Node of a backup is deleted while it is cut off from all API servers. The
// holder stops sending it advertisements, it takes the VIP, and yields within a second,
// whatever the profile: the holder answers its announcements.
func TestHardCase51SplitBrain(t *testing.T) {
	testkit.Live(t)
	settings := maps.Clone(inForceEverywhere)
	settings["virtual"] = [2]string{fmt.Sprintf(`{"profile":"virtual","mode":"unicast","version":3,"advertIntervalMS":%d}`, v1alpha1.VirtualIntervalMS), "mode: unicast\nprofile: virtual\n"}
	for family, l := range families {
		for profile, x := range settings {
			t.Run(family+" "+profile, func(t *testing.T) {
				leaveIPv6(t, l)
				c := newMembers(t, l, x[0], x[1])
				c.awaitRunning()
				holder := c.holder(c.all()...)
				gone := c.nodes[c.others(holder)[0]]
				cut(c, gone)
				gone.awaitMetric("vipgen_nodes_stale", 1)
				stop, machine := c.countTwo(gone.name), testkit.StartStopwatch()
				c.list.RemoveNode(gone.name)
				gone.awaitState("it is in doubt", isLeftOut("no API server says that the cluster has it"))
				testkit.Await(t, "the VIP to be on one node", func() bool { return len(c.holders()) == 1 })
				c.holder(c.others(gone.name)...)
				both, late := stop(), machine.End()
				t.Logf("it and another node held the VIP for %v", both)
				testkit.Promise(t, "split brain", both, time.Second, 3*time.Second, late)
			})
		}
	}
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
					c.list.Patch(daemon.NodesPath+"/"+x.name, daemon.Object{"metadata": daemon.Object{"annotations": daemon.Object{
						"k8s.ovn.org/host-cidrs": fmt.Sprintf("[%q,%q]", x.address, kubelets(n)),
					}}})
				}
				x.Write(keptSettings, []byte(`{"profile":"classic","mode":"unicast","version":2,"advertIntervalMS":1000}`))
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
