package lab

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/agent/state"
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
