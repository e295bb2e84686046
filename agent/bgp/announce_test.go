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
	"syscall"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/testbed/netns"
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

// TestReset: a session that its router ends opens again before GoBGP would.
func TestReset(t *testing.T) {
	testkit.Live(t)
	l := newRacks(t, cluster, frrRack, birdRack)
	l.awaitBFD()
	before := len(l.nodes["n3"].log.String())
	reset := time.Now()
	l.run(l.r2, "birdc", "-s", l.birdctl, `restart "n?"`)
	testkit.AwaitWithin(t, time.Minute, "the session to open again", func() bool {
		return strings.Contains(l.nodes["n3"].log.String()[before:], "BGP session established")
	}, l.states)
	if took := time.Since(reset); took > 6*time.Second { // GoBGP alone takes at least 6.5: holdtimeIdle, and 1.5 to connect
		t.Errorf("it took %v", took)
	}
	l.awaitAll(vip4, "n1", "n2", "n3")
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

// TestUnnumbered: sessions by interface carry the VIPs of both families, with a password in one rack. The
// router's BFD finds a node whose agent is dead, and a router that comes back with another address has its
// session again.
func TestUnnumbered(t *testing.T) {
	testkit.Live(t)
	session := "{interface: up0, asn: 64601, holdTime: 9s, bfd: {enabled: true, interval: 50ms, multiplier: 3}, nodes: {names: [n1, n2]}, passwordFile: /etc/vipgen/bgp/word}"
	other := strings.NewReplacer("up0, asn: 64601", "up0, asn: 64602", "n1, n2", "n3", "passwordFile: /etc/vipgen/bgp/word", "ttlSecurity: true").Replace(session)
	conf := func(session string) string {
		return regexp.MustCompile(`(?s)( +- )\{address:.*  # end`).ReplaceAllString(cluster, "$1"+session+"\n  # end")
	}
	frr := regexp.MustCompile(`(?m)^ +(no neighbor 2001:db8:1:|neighbor 2001:db8:1::1. peer-group ).*\n`).ReplaceAllString(frrRack, "")
	for n, a := range map[string]string{"n1": "1", "n2": "2"} {
		frr = strings.NewReplacer("192.0.2.1"+a+" peer", n+" interface peer", "192.0.2.1"+a, n, "2001:db8:1::1"+a, n).Replace(frr)
	}
	l := newRacks(t, conf(session), frr, birdLinks)
	n3 := l.nodes["n3"]
	n3.stop(t)
	l.startAgent(n3, conf(other))
	l.awaitBFD()
	l.awaitAll(vip4, "n1", "n2", "n3")
	l.awaitAll(vip6, "n1", "n2", "n3")
	testkit.Contains(t, l.run(l.r2, "ip", "route", "show", vip4.String()), "via inet6 fe80::", "dev n3")
	testkit.Contains(t, l.run(l.r1, "ip", "-6", "route", "show", vip6.String()), "via fe80::", "dev n1", "dev n2")
	n1 := l.nodes["n1"]
	testkit.Must(t, n1.agent.Process.Signal(syscall.SIGSTOP))
	testkit.AwaitWithin(t, 3*time.Second, "BFD to find that the node is dead", func() bool {
		return !strings.Contains(l.run(l.r1, "ip", "route", "show", vip4.String())+l.run(l.r1, "ip", "-6", "route", "show", vip6.String()), "dev n1")
	})
	testkit.Must(t, n1.agent.Process.Signal(syscall.SIGCONT))
	testkit.Must(t, l.birdRun.Process.Kill())
	l.birdRun.Wait()
	l.readdress(l.r2, n3, "fe80::99")
	l.bird(birdLinks)
	l.awaitRouter(n3, "fe80::99")
	l.readdress(l.r1, n1, "fe80::98")
	l.awaitRouter(n1, "fe80::98")
	l.awaitBFD()
	l.awaitAll(vip4, "n1", "n2", "n3")
	l.awaitAll(vip6, "n1", "n2", "n3")
}

// readdress replaces the link-local address of a router on its link to a node.
func (l *racks) readdress(router *netns.Node, n *rackNode, address string) {
	l.t.Helper()
	l.run(router, "ip", "-6", "address", "flush", "dev", n.Name, "scope", "link")
	l.run(router, "ip", "address", "add", address+"/64", "dev", n.Name)
}

// awaitRouter waits for the session of a node with the router of this link-local address.
func (l *racks) awaitRouter(n *rackNode, address string) {
	l.t.Helper()
	began := time.Now()
	testkit.AwaitWithin(l.t, 20*time.Second, "a session with "+address, func() bool {
		s, err := state.Read[state.BGP](n.state)
		return err == nil && s.Peers[0].Established() && s.Peers[0].Address.WithZone("").String() == address
	}, l.states)
	l.t.Logf("session with %s after %v", address, time.Since(began))
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
