package lab

import (
	_ "embed"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/testbed/container"
	"github.com/vipgen/vipgen/lab/testbed/probe"
)

// The demo's input during the steps of docs/move-to-bgp.md.
var (
	routedInstall = routedFrom(demo)
	routers       = vipgenYAML + `  bgp:
    localASN: 64512
    peers:
    - {address: 192.0.2.254, asn: 64601}
    - {address: "2001:db8::254", asn: 64601}
`
	nextVIPs = routers + `  additionalAPIVIPs:
  - name: new
    vips: [198.51.100.5, "2001:db8:100::5"]
    announce: bgp
  ingress:
  - name: new
    controller: default
    vips: [198.51.100.6, "2001:db8:100::6"]
    announce: bgp
`
	routedOnly = routers + "  announce: bgp\n"
	lastVIPs   = routedOnly + `  additionalAPIVIPs:
  - name: old
    vips: [192.0.2.5, "2001:db8::5"]
    announce: vrrp
    virtualRouterID: %d
  ingress:
  - name: old
    controller: default
    vips: [192.0.2.6, "2001:db8::6"]
    announce: vrrp
    virtualRouterID: %d
`
)

// routedFrom returns an install-config with the VIPs by BGP.
func routedFrom(config string) string {
	return strings.NewReplacer(`192.0.2.5, "2001:db8::5"`, `198.51.100.5, "2001:db8:100::5"`,
		`192.0.2.6, "2001:db8::6"`, `198.51.100.6, "2001:db8:100::6"`).Replace(config)
}

// birdOfNodes is the router's configuration: the VIPs alone are accepted. By default, BIRD refuses
// sessions for a minute after BFD went down.
//
//go:embed testdata/bird.conf
var birdOfNodes string

// TestMoveToBGP moves the VIPs of API and ingress from VRRP to BGP and back, in the steps of
// docs/move-to-bgp.md, each node by node. Clients on the subnet and behind the router use the VIPs
// that names have at the time.
func TestMoveToBGP(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	if _, err := os.Stat("/usr/sbin/bird"); err != nil {
		testkit.CannotRun(t, "it takes Debian's package bird2")
	}
	before := load(t, demo)
	groups := before.Config.Spec.Groups
	moved := loadWith(t, routedInstall, fmt.Sprintf(lastVIPs, groups[0].VirtualRouterID, groups[1].VirtualRouterID))
	cfg := Config{Cluster: before, Plan: planOf(3, 2)}
	cfg.Images = map[string]container.Image{before.Images.Agent: {Programs: map[string]string{
		"/usr/bin/vipgen-agent": testkit.Agent(t), "/usr/bin/vipgen-bgp": testkit.Speaker(t)}}}
	c := newClusterOf(t, cfg)
	far := c.routed(t)
	// By VRRP alone, both with the first VIPs by VRRP, both with the first VIPs by BGP, by BGP alone.
	steps := []map[string]tree{trees(t, before), trees(t, loadWith(t, demo, nextVIPs)), trees(t, moved), trees(t, loadWith(t, routedInstall, routedOnly))}
	nodes := c.exchangedNodes(steps[0])
	workers, masters := inPool(nodes, v1alpha1.RoleWorker), inPool(nodes, v1alpha1.RoleMaster)
	nodes = append(workers, masters...)
	c.check(t)
	awaitWell(t, c.Cluster)
	old, fresh := vipsOf(before), vipsOf(moved)[:4]
	both := []*netns.Node{c.Client, far}

	onOld := c.askFrom(t, old, both)
	c.announces(nodes, steps[1], 2, 2)
	onNew := c.askFrom(t, fresh, both)
	c.announces(nodes, steps[2], 2, 2)
	answered(t, onOld)
	c.announces(nodes, steps[3], 0, 2)
	for _, vip := range old {
		if h := c.holders(vip); len(h) > 0 {
			t.Errorf("%s holds %v still", h[0].Name, vip)
		}
	}
	c.announces(nodes, steps[2], 2, 2)
	onOld = c.askFrom(t, old, both)
	c.announces(nodes, steps[1], 2, 2)
	answered(t, onNew)
	c.announces(nodes, steps[0], 2, 0)
	c.check(t)
	answered(t, onOld)
}

// routed adds a router that speaks BGP, to which nodes and the client on their subnet send what is
// not for it, and returns a client behind it.
func (c *cluster) routed(t *testing.T) *netns.Node {
	t.Helper()
	prefixes := func(list ...string) (out []netip.Prefix) {
		for _, p := range list {
			out = append(out, netip.MustParsePrefix(p))
		}
		return out
	}
	router, err := c.Network().AddNode("router", prefixes("192.0.2.254/24", "2001:db8::254/64", "203.0.113.1/24", "2001:db8:c::1/64")...)
	testkit.Must(t, err)
	far, err := c.Network().AddNode("far", prefixes("203.0.113.10/24", "2001:db8:c::10/64")...)
	testkit.Must(t, err)
	run := func(n *netns.Node, command ...string) {
		t.Helper()
		testkit.Run(t, n.Command(t.Context(), command[0], command[1:]...))
	}
	// A redirect would tie a client on the subnet to one node.
	run(router, "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1", "net.ipv4.conf.all.send_redirects=0", "net.ipv4.conf.eth0.send_redirects=0",
		"net.ipv4.fib_multipath_hash_policy=1", "net.ipv6.fib_multipath_hash_policy=1")
	run(c.Client, "sysctl", "-qw", "net.ipv6.conf.all.accept_redirects=0", "net.ipv6.conf.eth0.accept_redirects=0")
	run(far, "ip", "route", "replace", "default", "via", "203.0.113.1")
	run(far, "ip", "-6", "route", "replace", "default", "via", "2001:db8:c::1")
	on := []*netns.Node{c.Client}
	for _, n := range c.nodes {
		on = append(on, n.Node.Node)
	}
	for _, n := range on {
		run(n, "ip", "route", "replace", "default", "via", "192.0.2.254")
		run(n, "ip", "-6", "route", "replace", "default", "via", "2001:db8::254")
	}
	dir := t.TempDir()
	conf := filepath.Join(dir, "bird.conf")
	testkit.Must(t, os.WriteFile(conf, []byte(birdOfNodes), 0o644))
	bird := router.Command(t.Context(), "chrt", "-r", "1", "bird", "-f", "-c", conf, "-s", filepath.Join(dir, "bird.ctl"))
	testkit.Must(t, bird.Start())
	t.Cleanup(func() {
		bird.Process.Kill()
		bird.Wait()
	})
	return far
}

// askFrom sends requests to VIPs as askAll does, to those of the API from the first client, to those of
// ingress from the second one.
func (c *cluster) askFrom(t *testing.T, vips []netip.Addr, from []*netns.Node) (out []vipProbe) {
	t.Helper()
	for i, vip := range vips {
		at := probe.Target{URL: "https://" + netip.AddrPortFrom(vip, 6443).String() + asked, Timeout: 900 * time.Millisecond}
		if strings.HasSuffix(vip.String(), "6") {
			at.URL, at.Host = "http://"+netip.AddrPortFrom(vip, 80).String()+"/", "console.apps."+domain
		}
		at.Dial = from[i/len(from)%len(from)].DialContext
		out = append(out, c.asks(t, vip, 4*probe.LiveEvery, at))
	}
	return out
}

// answered ends probes whose every request is to have an answer.
func answered(t *testing.T, list []vipProbe) {
	t.Helper()
	for _, p := range list {
		p.answersFor(t, 2*time.Second)
		p.expect(t, 0)
	}
}

// announces writes the files of their pools to nodes, one after the other: the next one when
// the node elects and announces that many VIPs, routers have these, and each elected one has one
// holder.
func (c *cluster) announces(nodes []*exchanged, to map[string]tree, elected, announced int) {
	c.t.Helper()
	for _, x := range nodes {
		x.give(to[x.Role])
		var s state.Keepalived
		what := fmt.Sprintf("%s to elect %d VIPs and announce %d", x.Name, elected, announced)
		testkit.Await(c.t, what, func() bool {
			now, alive := published[state.Keepalived](x.node)
			by, announces := published[state.BGP](x.node)
			s = now
			n := 0
			for _, v := range by.VIPs {
				if v.Announced {
					n++
				}
			}
			if elected == 0 && alive || announced == 0 && announces {
				return false
			}
			known := !slices.ContainsFunc(by.Peers, func(p state.BGPPeer) bool { return p.BFD != "up" })
			return (elected == 0 || alive && s.PID != 0 && len(s.Instances) == elected) && (announced == 0 || announces && n == announced && known)
		})
		if elected == 0 {
			continue
		}
		for _, i := range s.Instances {
			c.holder(c.t, i.VIP)
		}
	}
}
