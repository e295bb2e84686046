package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/testkit"
)

// away is what a node sees of API VIPs whose holder is dead: nothing.
const away = `add table inet away
add chain inet away output { type filter hook output priority 0; }
add rule inet away output ip daddr 192.0.2.5 counter drop
add rule inet away output ip6 daddr 2001:db8::5 counter drop
`

// Programs on a node reach the API while it cannot reach the VIPs' holder at all, over
// connections of before and over new ones.
func testOwnConnections(t *testing.T, c *cluster) {
	machine, broken := testkit.StartStopwatch(), 0
	fails := func(n *node, when string, err error) {
		t.Helper()
		t.Logf("%s, %s: %v", n.Name, when, err)
		broken++
	}
	for _, n := range []*node{c.backup(t), c.node("worker-0")} {
		testkit.Await(t, "HAProxy on "+n.Name+" to be there for the node's own connections", func() bool {
			s, alive := published[state.Firewall](n)
			return alive && s.Own
		})
		connect := func(when string) (out []connection) {
			t.Helper()
			for _, vip := range []netip.Addr{api, api6} {
				conn, err := connectFrom(t, n.Host.Node, vip)
				if err != nil {
					fails(n, when, err)
					continue
				}
				out = append(out, conn)
			}
			return out
		}
		ask := func(when string, all []connection) {
			t.Helper()
			for _, conn := range all {
				if err := conn.ask(); err != nil {
					fails(n, conn.RemoteAddr().String()+", "+when, err)
				}
			}
		}
		before := connect("at first")
		ask("at first", before)
		c.must(n.Run(strings.NewReader(away), "nft", "-f", "-"))
		ask("without the holder", before)
		after := connect("without the holder")
		ask("without the holder, a new one", after)
		c.must(n.Run(strings.NewReader("delete table inet away\n"), "nft", "-f", "-"))
		show(t, fmt.Sprintf("%s$ curl -k https://192.0.2.5:6443/readyz   # while the VIP's holder cannot be reached", n.Name), "ok, over connections of before and new ones")
	}
	// A HAProxy that gets no time takes API servers for dead, and ends connections.
	testkit.Promise(t, "connections of nodes themselves that fail", broken, 0, 10, machine.End())
}

// HAProxy of a compute node is for its own programs: nobody else reaches it.
func testOthersConnections(t *testing.T, c *cluster) {
	for _, address := range c.node("worker-0").OwnAddresses() {
		at := netip.AddrPortFrom(address.Addr(), 9445).String()
		ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
		conn, err := c.Client.DialContext(ctx, "tcp", at)
		cancel()
		if !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: %v, want it to be refused", at, err)
		}
		if err == nil {
			conn.Close()
		}
	}
}
