package lab

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/templates/manifest"
)

func testStaleVIP(t *testing.T, c *cluster) {
	n := c.backup(t)
	restore := n.removePod(manifest.Keepalived)
	n.ip("link", "add", "br-old", "type", "bridge")
	n.ip("link", "set", "br-old", "up")
	n.ip("address", "add", api.String()+"/24", "dev", n.Link)
	n.ip("address", "add", api6.String()+"/64", "dev", "br-old", "nodad")
	show(t, n.Name+"$ ip -brief address   # after an unclean exit", n.listAddresses())
	restore()
	testkit.Await(t, "the stale VIPs to go", func() bool {
		left := n.listAddresses()
		return !strings.Contains(left, api.String()+"/24") && !strings.Contains(left, api6.String())
	})
	show(t, n.Name+"$ ip -brief address   # with its keepalived pod", n.listAddresses())
	n.ip("link", "delete", "br-old")
}

func (n *node) listAddresses() string {
	n.cluster.t.Helper()
	out, err := n.Command(n.cluster.t.Context(), "ip", "-brief", "address").Output()
	testkit.Must(n.cluster.t, err)
	return strings.TrimSpace(string(out))
}

// The node's address moves to a bridge, as with OVN-Kubernetes.
func testInterfaceChanges(t *testing.T, c *cluster) {
	n := c.holder(t, api)
	old := n.Link
	n.ip("link", "add", "br-ex", "type", "bridge", "forward_delay", "0")
	n.ip("address", "flush", "dev", old, "scope", "global")
	n.ip("link", "set", old, "master", "br-ex")
	n.ip("link", "set", "br-ex", "up")
	n.Link = "br-ex"
	for _, a := range n.OwnAddresses() {
		testkit.Must(t, n.AddAddress("br-ex", a))
	}
	testkit.Await(t, "keepalived on "+n.Name+" to use br-ex", func() bool {
		s, alive := published[state.Keepalived](n)
		return alive && s.PID != 0 && len(s.Instances) == 2 && !slices.ContainsFunc(s.Instances, func(i state.Instance) bool { return i.Interface != "br-ex" })
	})
	show(t, n.Name+"$ grep interface /etc/keepalived/keepalived.conf", grep(n.read(v1alpha1.KeepalivedConf), "interface br-ex"))
}

// grep returns the lines that contain a string.
func grep(text, what string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.Contains(line, what) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// No node holds the API VIP, and a node that has never known its peers starts: it learns them
// from its own API server.
func testNobodyHolds(t *testing.T, c *cluster) {
	var restore []func()
	for _, n := range c.masters() {
		restore = append(restore, n.removePod(manifest.Keepalived))
	}
	for _, vip := range []netip.Addr{api, api6} {
		if h := c.holders(vip); len(h) > 0 {
			t.Fatalf("%v is still on %s", vip, h[0].Name)
		}
	}
	n := c.masters()[0]
	testkit.Must(t, os.Remove(n.Path("/etc/keepalived/.vipgen-nodes.json")))
	restore[0]()
	if h := c.holder(t, api); h != n {
		t.Fatalf("%s holds the VIP", h.Name)
	}
	testkit.Await(t, n.Name+" to report the two others as peers", func() bool {
		s, alive := published[state.Keepalived](n)
		return alive && len(s.Instances) == 2 && len(s.Instances[0].Peers) == 2
	})
	show(t, n.Name+"$ vipgen-agent status   # the only one with a keepalived pod", n.exec(manifest.Keepalived, "keepalived", "/vipgen/vipgen-agent", "status"))
	testkit.Contains(t, n.container(manifest.Keepalived, "keepalived").Log(), "server=https://localhost:6443")
	for _, f := range restore[1:] {
		f()
	}
	for _, other := range c.masters() {
		testkit.Await(t, "keepalived on "+other.Name, func() bool {
			s, alive := published[state.Keepalived](other)
			return alive && s.PID != 0
		})
	}
}

func testFlush(t *testing.T, c *cluster) {
	n := c.holder(t, api)
	before, _ := published[state.Firewall](n)
	p := c.startProbe(t, api)
	testkit.Must(t, n.Run(nil, "nft", "flush", "ruleset"))
	testkit.Await(t, "the redirect to be restored", func() bool {
		now, alive := published[state.Firewall](n)
		return alive && now.InPlace && now.Restored > before.Restored
	})
	p.answers(t, 20)
	out, err := n.Command(t.Context(), "nft", "list", "table", "inet", "vipgen").CombinedOutput()
	show(t, n.Name+"$ nft flush ruleset; nft list table inet vipgen", string(out))
	if err != nil || strings.Count(string(out), "dnat ip") != 4 {
		t.Errorf("not every VIP is redirected in both hooks: %v", err)
	}
	p.expect(t, inFlight)
	p.stays(t, n, c.holder(t, api))
}

// The kernel ends all processes in the container with the first one, the agent: keepalived
// cannot give its VIP up, and the restarted agent removes it.
func testAgentKilled(t *testing.T, c *cluster) {
	n := c.holder(t, api)
	k := n.container(manifest.Keepalived, "keepalived")
	before := k.Status().Restarts
	run := n.running(manifest.Keepalived, "keepalived")
	list, err := run.Processes()
	testkit.Must(t, err)
	p := c.startProbe(t, api)
	testkit.Must(t, k.Signal(syscall.SIGKILL))
	<-run.Done()
	var names []string
	for _, process := range list {
		names = append(names, process.Name)
		// The kernel takes a while to end killed processes when all cores are busy.
		testkit.Await(t, process.Name+" to end with the agent", func() bool { return syscall.Kill(process.PID, 0) == syscall.ESRCH })
	}
	if !slices.Contains(names, "keepalived") {
		t.Errorf("keepalived did not run: %q", names)
	}
	next := c.otherHolder(t, api, n)
	testkit.Await(t, "the container to be started again", func() bool { s := k.Status(); return s.Running && s.Restarts == before+1 })
	p.answers(t, 10)
	show(t, n.Name+"$ kill -9 "+fmt.Sprintf("%v", names), "the VIP moved from "+n.Name+" to "+next.Name)
	p.expect(t, inFlight)
}

// The agent that probes HAProxy for all jobs of the node hangs: the keepalived job then probes
// HAProxy itself. The VIP stays while HAProxy answers, and moves when HAProxy hangs as well.
func testProberHangs(t *testing.T, c *cluster) {
	n := c.holder(t, api)
	signal := func(process string, s syscall.Signal) {
		n.must(func(ctx context.Context) error { return n.Signal(ctx, manifest.HAProxy, "haproxy", process, s) })
	}
	answered := func() bool {
		s, alive := published[state.Keepalived](n)
		return alive && slices.ContainsFunc(s.Facts, func(f state.Fact) bool { return f.Name == health.FactHAProxy && f.OK })
	}
	machine, p := testkit.StartStopwatch(), c.startProbe(t, api)
	signal("vipgen-agent", syscall.SIGSTOP)
	p.answers(t, 60)
	stays := c.holder(t, api) == n && answered()
	if late := machine.End(); !stays {
		testkit.Explained(t, "HAProxy counts as dead because the agent that asks it hangs", late, vrrp.HAProxyProbe.Timeout)
	}
	signal("haproxy", syscall.SIGSTOP)
	next := c.otherHolder(t, api, n)
	signal("haproxy", syscall.SIGCONT)
	signal("vipgen-agent", syscall.SIGCONT)
	testkit.Await(t, "HAProxy to count again", answered)
	p.answers(t, 10)
	show(t, n.Name+"$ kill -STOP haproxy and the agent that asks it", fmt.Sprintf("the VIP moved from %s to %s", n.Name, next.Name))
	p.expect(t, inFlight+20) // HAProxy hangs until the keepalived job has detected it
}

func testPowerLoss(t *testing.T, c *cluster) {
	n := c.holder(t, api)
	p := c.startProbe(t, api)
	// The client's kernel keeps an entry learned by ARP for a second, regardless of
	// announcements (arp(7), locktime). A client from before keeps it longer.
	p.answersFor(t, 2*time.Second)
	n.powerOff()
	next := c.otherHolder(t, api, n)
	p.answers(t, 20)
	show(t, n.Name+"   # loses power", "the VIP moved to "+next.Name)
	n.powerOn()
	for _, name := range []string{manifest.Keepalived, manifest.HAProxy, manifest.CoreDNS} {
		n.container(name, name)
	}
	awaitWell(t, c.Cluster)
	p.expect(t, inFlight)
	p.stays(t, next, c.holder(t, api))
}
