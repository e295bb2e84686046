package tickle

import (
	"errors"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
)

const (
	masquerade  = "table ip nat { chain post { type nat hook postrouting priority srcnat; oifname eth0 masquerade; }; }\n"
	dropInvalid = `table inet filter {
	chain forward { type filter hook forward priority filter; ct state invalid drop; }
	chain input { type filter hook input priority filter; ct state invalid drop; }
}
`
)

// Clients behind gateways that follow sequence numbers, as Linux does unless set otherwise, have
// their dead connections reset as well, and no living one. A gateway answers segments that it
// discards by resets, which the VIP's holder ignores.
func TestGateways(t *testing.T) {
	for _, tt := range []struct {
		name, rules string
		liberal     string // net.netfilter.nf_conntrack_tcp_be_liberal
	}{
		{"Router", "", "0"},
		{"NAT", masquerade, "0"},
		{"NATDropsInvalid", masquerade + dropInvalid, "0"},
		{"FirewallDropsInvalid", dropInvalid, "0"},
		{"NATLiberal", masquerade + dropInvalid, "1"},
		{"FirewallLiberal", dropInvalid, "1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			network := daemon.NewNetwork(t)
			add := func(name, address string) *netns.Node {
				n, err := network.AddNode(name, netip.MustParsePrefix(address))
				testkit.Must(t, err)
				return n
			}
			vip, gateway := addr("192.0.2.5"), add("gateway", "192.0.2.99/24")
			first, second, from := &held{Node: add("first", "192.0.2.11/24")}, &held{Node: add("second", "192.0.2.12/24")}, add("client", "198.51.100.9/24")
			testkit.Must(t, gateway.AddLink("inner", netip.MustParsePrefix("198.51.100.1/24")))
			route(t, gateway, tt.rules, tt.liberal)
			testkit.Run(t, from.Command(t.Context(), "ip", "route", "add", "default", "via", "198.51.100.1"))
			for _, h := range []*held{first, second} {
				testkit.Run(t, h.Command(t.Context(), "ip", "route", "add", "198.51.100.0/24", "via", "192.0.2.99"))
			}
			first.hold(t, vip)
			dead := connected(t, from, vip)
			testkit.Must(t, first.SetLink(false))
			second.hold(t, vip)
			testkit.Run(t, gateway.Command(t.Context(), "ip", "neighbour", "flush", "all"))
			alive := connected(t, from, vip)
			testkit.Must(t, dead.SetKeepAlive(false))
			seen := func(a netip.AddrPort) netip.AddrPort {
				if strings.Contains(tt.rules, "masquerade") {
					return netip.AddrPortFrom(addr("192.0.2.99"), a.Port())
				}
				return a
			}
			ports := map[uint16][]netip.AddrPort{6443: {seen(local(dead)), seen(local(alive))}}
			for _, r := range rounds {
				testkit.Must(t, second.Do(func() error { return tickle(t.Context(), vip, ports, r.number) }))
				works(t, alive)
			}
			dead.SetReadDeadline(time.Now().Add(testkit.Patience))
			if _, err := dead.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the connection to the machine that is gone: %v", err)
			}
			works(t, alive)
		})
	}
}

// route has a gateway forward by rules.
func route(t *testing.T, gateway *netns.Node, rules, liberal string) {
	t.Helper()
	if rules != "" {
		load := gateway.Command(t.Context(), "nft", "-f", "-")
		load.Stdin = strings.NewReader(rules)
		testkit.Run(t, load)
		testkit.Run(t, gateway.Command(t.Context(), "sh", "-c", "echo "+liberal+" >/proc/sys/net/netfilter/nf_conntrack_tcp_be_liberal"))
	}
	testkit.Run(t, gateway.Command(t.Context(), "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"))
}
