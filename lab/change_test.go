package lab

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

// A control-plane node keeps its name and changes its address.
func testAddressChanges(t *testing.T, c *cluster) {
	n := c.backup(t)
	all, fresh := n.OwnAddresses(), netip.MustParsePrefix("192.0.2.40/24")
	old := all[0]
	all[0] = fresh
	n.must(func(ctx context.Context) error { return n.Renumber(ctx, all) })

	c.awaitBackend(t, n.backend(true))
	for _, other := range c.nodes {
		c.awaitDNS(t, other.Address(), n.Name+"."+domain, "A", fresh.Addr().String())
	}
	for _, other := range c.masters() {
		if other == n {
			continue
		}
		testkit.Await(t, "keepalived on "+other.Name+" to have the new peer", func() bool {
			s, alive := published[state.Keepalived](other)
			return alive && len(s.Instances) > 0 && slices.Contains(s.Instances[0].Peers, fresh.Addr()) && !slices.Contains(s.Instances[0].Peers, old.Addr())
		})
	}
}

// NetworkManager's file names the node itself, loopback, a VIP and more servers than CoreDNS
// supports; then none.
func testUpstreams(t *testing.T, c *cluster) {
	n := c.node("worker-0")
	const file = "/run/NetworkManager/resolv.conf"
	was := n.read(file)
	var b strings.Builder
	b.WriteString("search example.com\nnameserver 192.0.2.20\nnameserver 127.0.0.1\nnameserver ::1\nnameserver 192.0.2.5\nnameserver " + upstream.String() + "\n")
	for i := range 16 {
		fmt.Fprintf(&b, "nameserver 203.0.113.%d\n", i+1)
	}
	upstreams := func(want int) []string {
		t.Helper()
		var s state.CoreDNS
		testkit.Await(t, fmt.Sprintf("%d upstreams", want), func() bool {
			now, alive := published[state.CoreDNS](n)
			s = now
			return alive && s.Serving && len(s.Upstreams) == want
		})
		return s.Upstreams
	}
	n.write(file, b.String())
	n.must(n.configureAddress)
	list := upstreams(15)
	show(t, n.Name+"$ vipgen-agent status | grep upstreams   # of 21 servers", strings.Join(list, " "))
	for _, not := range []string{"192.0.2.20", "127.0.0.1", "::1", "192.0.2.5"} {
		if slices.Contains(list, not) {
			t.Errorf("CoreDNS asks %s", not)
		}
	}
	const want = "search demo.example.com example.com\nnameserver 192.0.2.20\nnameserver 192.0.2.250\nnameserver 203.0.113.1\n"
	show(t, n.Name+"$ cat /etc/resolv.conf", n.read("/etc/resolv.conf"))
	if got := n.read("/etc/resolv.conf"); !strings.HasSuffix(got, want) {
		t.Errorf("resolv.conf:\n%s\nwant\n%s", got, want)
	}
	c.awaitDNS(t, n.Address(), "www.example.org", "A", "203.0.113.80")

	n.write(file, "# nothing yet\n")
	upstreams(0)
	c.awaitDNS(t, n.Address(), "api."+domain, "A", "192.0.2.5")

	n.write(file, was)
	upstreams(1)
	c.awaitDNS(t, n.Address(), "www.example.org", "A", "203.0.113.80")
}

// join adds a node that did not exist at the start.
func (c *cluster) join(name, role string, n int) *node {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), testkit.Patience)
	defer cancel()
	added, err := c.Add(ctx, machine(name, role, n))
	c.must(err)
	joined := &node{Node: added, cluster: c}
	c.nodes = append(c.nodes, joined)
	return joined
}

// putRouterPod makes the object of a ready router pod.
func (c *cluster) putRouterPod(controller, name string) {
	c.t.Helper()
	c.create(routerPods, fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"router-%s-%s","labels":{%q:%[1]q}},
		"spec":{"nodeName":%[2]q,"hostNetwork":true,"containers":[{"name":"router","image":"router"}]}}`, controller, name, routerLabel))
	c.patch(routerPods+"/router-"+controller+"-"+name+"/status", `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`)
}

// The default router moves to a worker that joins the cluster. A router of
// another ingress controller stays, and answers as before.
func testRouterMoves(t *testing.T, c *cluster) {
	n := c.join("worker-1", "worker", 21)
	was := c.holder(t, ingress)
	c.remove(routerPods + "/router-default-" + was.Name)
	c.putRouterPod("sharded", was.Name)
	n.must(func(ctx context.Context) error {
		return n.PutRouter(ctx, "default", v1alpha1.DefaultPorts.RouterHealth)
	})
	for _, vip := range []string{"192.0.2.6", "2001:db8::6"} {
		if h := c.otherHolder(t, netip.MustParseAddr(vip), was); h != n {
			t.Fatalf("%s is held by %s", vip, h.Name)
		}
	}
	// The client's kernel may keep the VIP's last holder for a second (arp(7), locktime).
	var out string
	testkit.Await(t, "an answer of the router on "+n.Name, func() bool {
		var err error
		out, err = c.run("curl", "-s", "-H", "Host: console.apps."+domain, "http://192.0.2.6/")
		return err == nil && strings.HasSuffix(out, "at "+n.Name)
	}, func() string { return out })
	show(t, "curl -H 'Host: console.apps."+domain+"' http://192.0.2.6/", out)
}
