package bgp_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/testkit"
)

// ask returns the name of the node that answers at a VIP; empty for none. Each request has a
// connection of its own, so that routers choose a node for it.
func (l *racks) ask(vip netip.Addr) string {
	ctx, cancel := context.WithTimeout(l.t.Context(), 100*time.Millisecond)
	defer cancel()
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		return l.client.DialContext(ctx, "tcp", address)
	}}
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+netip.AddrPortFrom(vip, 9445).String()+"/", nil)
	reply, err := transport.RoundTrip(r)
	if err != nil {
		return ""
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		return ""
	}
	return string(text)
}

// awaitAll waits until each of these nodes answers at a VIP, and no other, several times.
func (l *racks) awaitAll(vip netip.Addr, names ...string) {
	l.t.Helper()
	slices.Sort(names)
	testkit.AwaitWithin(l.t, time.Minute, fmt.Sprintf("%s to be answered by %v", vip, names), func() bool {
		got := map[string]bool{}
		for range 24 {
			if by := l.ask(vip); by != "" {
				got[by] = true
			}
		}
		return slices.Equal(slices.Sorted(maps.Keys(got)), names)
	}, func() string { return l.states() })
}

func (l *racks) states() (out string) {
	for name, n := range l.nodes {
		s, err := state.Read[state.BGP](n.state)
		out += fmt.Sprintf("%s: %+v %v\n", name, s, err)
	}
	return out
}

// TestRacks: every node of both racks announces its VIPs, to a router once BFD is up; clients
// reach the others when one stops as planned, loses HAProxy and loses power.
func TestRacks(t *testing.T) {
	testkit.Live(t)
	l := newRacks(t, cluster, frrRack, birdRack)
	l.awaitRoute()
	_, session, _ := strings.Cut(l.run(l.r2, "birdc", "-s", l.birdctl, "show bfd sessions"), "192.0.2.73 ")
	testkit.Contains(t, strings.Split(session, "\n")[0], " Up ")
	l.awaitBFD()
	l.awaitAll(vip4, "n1", "n2", "n3")
	l.awaitAll(vip6, "n1", "n2", "n3")
	l.noAddress()
	n2 := l.nodes["n2"]
	n2.stop(t)
	l.awaitAll(vip4, "n1", "n3")
	l.startAgent(n2, cluster)
	l.awaitAll(vip4, "n1", "n2", "n3")
	for _, h := range n2.haproxy {
		h.Close()
	}
	l.awaitAll(vip4, "n1", "n3")
	l.balance(n2)
	l.awaitAll(vip4, "n1", "n2", "n3")
	testkit.Must(t, l.nodes["n1"].SetLink(false))
	l.awaitAll(vip4, "n2", "n3")
}

// TestOnePath: without ECMP one node at a time has the VIPs, in both racks' routers and behind them.
func TestOnePath(t *testing.T) {
	testkit.Live(t)
	l := newRacks(t, strings.Replace(cluster, "    localASN:", "    ecmp: false\n    localASN:", 1), frrRack, birdRack)
	l.awaitBFD()
	l.awaitAll(vip4, "n1")
	l.awaitAll(vip6, "n1")
	l.nodes["n1"].stop(t)
	l.awaitAll(vip4, "n2")
	testkit.Must(t, l.nodes["n2"].SetLink(false))
	l.awaitAll(vip4, "n3")
}

// TestRouterWithoutBFD: a router that runs no BFD gets the VIPs nevertheless, late, and status names it.
func TestRouterWithoutBFD(t *testing.T) {
	testkit.Live(t)
	l := newRacks(t, cluster, frrRack, strings.ReplaceAll(birdRack, "passive; bfd on;", "passive;"))
	l.awaitRoute()
	l.awaitAll(vip4, "n1", "n2", "n3")
	testkit.AwaitWithin(t, time.Minute, "the state to name the routers", func() bool {
		s, err := state.Read[state.BGP](l.nodes["n3"].state)
		return err == nil && s != nil && len(s.Peers) == 2 && !slices.ContainsFunc(s.Peers, func(p state.BGPPeer) bool {
			return !p.Established() || !strings.Contains(p.Problem, "is it configured there?")
		})
	}, l.states)
	testkit.Contains(t, l.nodes["n3"].log.String(), "BFD with the router does not come up", "peer=192.0.2.65")
}

// TestExtendedNextHop: sessions over IPv6 alone carry the VIPs of both families.
func TestExtendedNextHop(t *testing.T) {
	testkit.Live(t)
	conf := regexp.MustCompile(`(?m)^    - .address: 192.*\n`).ReplaceAllString(cluster, "")
	frr := regexp.MustCompile(`(?m)^( neighbor 2001:db8:1::1.) peer-group vipgen$`).ReplaceAllString(frrRack, "$0\n$1 capability extended-nexthop")
	frr = strings.ReplaceAll(frr, "  no neighbor 2001:db8:1::1", "  neighbor 2001:db8:1::1")
	over6 := "2001:db8:2::/64 as 64512; dynamic name \"m\";"
	l := newRacks(t, strings.ReplaceAll(conf, "{address:", "{extendedNextHop: true, address:"), frr,
		strings.Replace(birdRack, over6, over6+"\n  ipv4 { import where net ~ [198.51.100.0/24{32,32}]; export none; extended next hop on; };", 1))
	l.awaitBFD()
	l.awaitAll(vip4, "n1", "n2", "n3")
	l.awaitAll(vip6, "n1", "n2", "n3")
	testkit.Contains(t, l.run(l.r2, "ip", "route", "show", vip4.String()), "via inet6 2001:db8:2::73")
	testkit.Must(t, l.nodes["n1"].SetLink(false))
	l.awaitAll(vip4, "n2", "n3")
}

// awaitRoute waits until the second rack's router has a route to the VIP.
func (l *racks) awaitRoute() {
	l.t.Helper()
	testkit.AwaitWithin(l.t, time.Minute, "a route of n3", func() bool {
		return strings.Contains(l.run(l.r2, "ip", "route", "show", vip4.String()), "192.0.2.73")
	}, l.states)
}

// awaitBFD waits until BFD watches all sessions.
func (l *racks) awaitBFD() {
	l.t.Helper()
	testkit.AwaitWithin(l.t, time.Minute, "BFD with all routers", func() bool {
		for _, n := range l.nodes {
			s, err := state.Read[state.BGP](n.state)
			if err != nil || s == nil || slices.ContainsFunc(s.Peers, func(p state.BGPPeer) bool { return !p.Established() || p.BFD != "up" }) {
				return false
			}
		}
		return true
	}, l.states)
}

// noAddress checks that a VIP is on no interface of any node, though all of them accept it:
// duplicate address detection has nothing to detect, and cannot take the VIP from a node
// that routers send packets to.
func (l *racks) noAddress() {
	l.t.Helper()
	for name, n := range l.nodes {
		l.sysctl(n.Node, "net.ipv6.conf.all.accept_dad=1", "net.ipv6.conf.default.accept_dad=1")
		testkit.Lacks(l.t, l.run(n.Node, "ip", "address"), vip4.String(), vip6.String())
		routes := l.run(n.Node, "ip", "route", "show", "table", "local") + l.run(n.Node, "ip", "-6", "route", "show", "table", "local")
		testkit.Contains(l.t, routes, "local "+vip4.String()+" dev lo", "local "+vip6.String()+" dev lo")
		if l.t.Failed() {
			l.t.Logf("of %s", name)
		}
	}
}

// TestTable: the routes of VIPs are in the table for another speaker while the node serves.
func TestTable(t *testing.T) {
	testkit.Live(t)
	l := newRacks(t, inTable(), frrRack, birdRack)
	n := l.nodes["n3"]
	show := func() (out string) {
		for line := range strings.Lines(l.run(n.Node, "ip", "route", "show", "table", "all", "proto", "86") + l.run(n.Node, "ip", "-6", "route", "show", "table", "all", "proto", "86")) {
			if strings.Contains(line, " table 198 ") {
				out += line
			}
		}
		return out
	}
	testkit.Await(t, "routes", func() bool {
		return strings.Contains(show(), vip4.String()+" dev lo table 198 scope link metric 100") && strings.Contains(show(), vip6.String()+" dev lo table 198 metric 100")
	}, show, l.states)
	testkit.Must(t, n.state.Publish(state.Firewall{}))
	testkit.Await(t, "a worse metric without the redirect", func() bool { return strings.Contains(show(), "metric 300") && !strings.Contains(show(), "metric 100 ") }, show)
	n.stop(t)
	testkit.Equal(t, "", show())
	testkit.Lacks(t, l.run(n.Node, "ip", "route", "show", "table", "local"), vip4.String())
}
