package keepalived

import (
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/guard"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/attack"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
	templates "github.com/vipgen/vipgen/templates/keepalived"
)

// intruder is a host on the cluster's network that is not one of its nodes.
type intruder struct {
	*netns.Node
	t       *testing.T
	address netip.Addr
}

func newIntruder(t *testing.T, network *netns.Network, address netip.Prefix) *intruder {
	t.Helper()
	return &intruder{daemon.AddNode(t, network, "intruder", address.String()), t, address.Addr()}
}

// flood sends advertisements for the API VIP to a node until stop is called.
func (i *intruder) flood(v attack.VRRP, vip, peer, to netip.Addr, perSecond int) *attack.Flood {
	i.t.Helper()
	from := map[attack.Source]netip.Addr{attack.Own: i.address, attack.Peer: peer, attack.Nobody: i.address.Next().Next()}[v.Source]
	f, err := attack.Start(i.Node, perSecond, v.Packet(apiRouterID, vip, from, to))
	testkit.Must(i.t, err)
	i.t.Cleanup(f.Stop)
	return f
}

// TestHardCase35Strangers: no packet of a host that is not a peer reaches keepalived, valid or
// not.
func TestHardCase35Strangers(t *testing.T) {
	testkit.Live(t)
	for name, l := range families {
		t.Run(name, func(t *testing.T) {
			c := newClusterOf(t, l)
			c.controlPlane(3)
			held := c.holder(c.all()...)
			holder := c.nodes[held]
			holder.awaitState("the guard is in place", func(s state.Keepalived) bool { return s.Guard.InPlace })
			x, peer := newIntruder(t, c.net, l.host(66)), c.nodes[c.others(holder.name)[0]]
			for n, a := range attack.VRRPs {
				rates := []int{floodRate}
				if n == 0 {
					rates = append(rates, 5000)
				}
				for _, perSecond := range rates {
					s, _ := holder.state()
					before, seen := dropped(s), []string{held}
					machine := testkit.StartStopwatch()
					f := x.flood(a, l.apiVIP, peer.address.Addr(), holder.address.Addr(), perSecond)
					holder.awaitState("packets are dropped: "+a.Name, func(s state.Keepalived) bool {
						if now := c.holders(); !slices.Equal(now, []string{held}) {
							seen = now
						}
						return dropped(s) >= before+uint64(2*perSecond)
					})
					f.Stop()
					if !c.stayed(a.Name, held, seen, machine.End()) {
						held = c.holder(c.all()...)
					}
				}
			}
			if n := strings.Count(holder.agent.Output(), "dropped VRRP packets"); n == 0 || n > 5 {
				t.Errorf("%d log lines report dropped packets, want one a minute", n)
			}
		})
	}
}

// TestHardCase35WithoutGuard: the same packets harm an unprotected keepalived with the same
// configuration, or the test above would prove nothing.
func TestHardCase35WithoutGuard(t *testing.T) {
	testkit.Live(t)
	for name, l := range families {
		t.Run(name, func(t *testing.T) {
			c := newClusterOf(t, l)
			c.controlPlane(2)
			c.holder(c.all()...)
			members := map[string]daemon.Member{}
			for name, n := range c.nodes {
				conf := testkit.ReadFile(t, n.Path(v1alpha1.KeepalivedConf))
				members[name] = daemon.Member{Addresses: []netip.Prefix{n.address}, Config: conf}
			}
			bare := daemon.NewCluster(t, l.apiVIP, members)
			x := newIntruder(t, bare.Network, l.host(66))
			for _, a := range attack.VRRPs {
				if a.Broken && l.apiVIP.Is6() {
					continue // the kernel verifies that checksum itself
				}
				victim := bare.Holder()
				f := x.flood(a, l.apiVIP, c.nodes[c.others(victim)[0]].address.Addr(), c.nodes[victim].address.Addr(), floodRate)
				testkit.Await(t, a.Name+" to harm the holder", func() bool { return !slices.Equal(bare.Holders(), []string{victim}) })
				f.Stop()
			}
		})
	}
}

// families are the layouts that attacks are tried on.
var families = map[string]layout{"IPv4": ipv4, "IPv6": ipv6}

// leaveIPv6 leaves IPv6 to runs with all variants: the decisions about participation are the
// same for both families. Tests of the kernel's part (guard, neighbours) always run with both.
func leaveIPv6(t *testing.T, l layout) {
	t.Helper()
	if l.apiVIP.Is6() {
		testkit.Variant(t)
	}
}

const (
	// apiRouterID is the API group's in both layouts.
	apiRouterID = 97
	// floodRate is more packets a second than the fast profile has advertisements.
	floodRate = 60
)

// dropped returns the number of packets dropped by the guard of a node.
func dropped(s state.Keepalived) (n uint64) {
	for _, d := range s.Guard.Dropped {
		n += d.Packets
	}
	return n
}

// TestHardCase35PeersChange: new peers are admitted at once, and former ones until keepalived
// has had time to remove them; the next agent removes the rules of one that was killed.
func TestHardCase35PeersChange(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	host := daemon.NewHost(t, daemon.AddNode(t, daemon.NewNetwork(t), "node", "192.168.111.11/24"))
	g := guardState{log: slog.New(slog.DiscardHandler)}
	group := func(peers ...string) []guard.Group {
		i := templates.Instance{Interface: "eth0", RouterID: apiRouterID, VIP: netip.PrefixFrom(apiVIP, 32), FullTTL: true, OnLink: true, AllKnown: true}
		for _, p := range peers {
			i.Peers = append(i.Peers, netip.MustParseAddr(p))
		}
		return guardGroups([]templates.Instance{i}, nil)
	}
	letThrough := func(when string, want ...string) {
		t.Helper()
		out, _ := host.Run(nil, "nft", "list", "table", "inet", guard.TableName)
		for _, a := range []string{"192.168.111.12", "192.168.111.13", "192.168.111.14"} {
			if got := strings.Contains(out, a); got != slices.Contains(want, a) {
				t.Errorf("%s: %s is let through: %v\n%s", when, a, got, out)
			}
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
