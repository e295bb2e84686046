package keepalived

import (
	"encoding/binary"
	"log/slog"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/agent/guard"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/testkit/daemon"
	"github.com/vipgen/vipgen/lab/netns"
	templates "github.com/vipgen/vipgen/templates/keepalived"
)

// intruder is a host on the network of a cluster that is none of its nodes.
type intruder struct {
	*netns.Node
	t       *testing.T
	address netip.Addr
}

func newIntruder(t *testing.T, network *netns.Network, address netip.Prefix) *intruder {
	t.Helper()
	return &intruder{daemon.AddNode(t, network, "intruder", address.String()), t, address.Addr()}
}

// attack is one kind of packet that nobody of a group sends.
type attack struct {
	name     string
	version  byte
	interval uint16 // as it stands in the packet
	ttl      byte
	// forged has it come from the address of a peer, broken gives it a wrong
	// checksum. Sources of IPv6 are not forged here.
	forged, broken bool
}

// attacks on a group that speaks VRRPv3: all but for one thing are right.
var attacks = []attack{
	{name: "a stranger's", version: 3, interval: 10, ttl: 255},
	{name: "TTL 10", version: 3, interval: 10, ttl: 10},
	{name: "TTL 10 of a peer", version: 3, interval: 10, ttl: 10, forged: true},
	{name: "wrong version", version: 2, interval: 1, ttl: 255},
	{name: "wrong checksum", version: 3, interval: 10, ttl: 255, broken: true},
}

// flood sends packets to a node until stop is called; sent counts them.
func (i *intruder) flood(a attack, routerID int, vip, peer, to netip.Addr, perSecond int) (sent *atomic.Int64, stop func()) {
	i.t.Helper()
	from := i.address
	if a.forged {
		from = peer
	}
	fd := i.socket(to, a.ttl)
	packet := a.packet(routerID, vip, from, to)
	sent, end, ended := new(atomic.Int64), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		defer unix.Close(fd)
		tick := time.NewTicker(max(time.Second/time.Duration(perSecond), time.Millisecond))
		defer tick.Stop()
		began := time.Now()
		for {
			for due := int64(time.Since(began).Seconds() * float64(perSecond)); sent.Load() < due; sent.Add(1) {
				unix.Sendto(fd, packet, 0, sockaddr(to)) // a full queue loses some, as on a wire
			}
			select {
			case <-end:
				return
			case <-tick.C:
			}
		}
	}()
	var once atomic.Bool
	stop = func() {
		if !once.Swap(true) {
			close(end)
			<-ended
		}
	}
	i.t.Cleanup(stop)
	return sent, stop
}

// socket opens one that sends whole packets of IPv4, and payloads of IPv6.
func (i *intruder) socket(to netip.Addr, ttl byte) (fd int) {
	i.t.Helper()
	err := i.Do(func() (err error) {
		if to.Is4() {
			fd, err = unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
			return err
		}
		if fd, err = unix.Socket(unix.AF_INET6, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 112); err != nil {
			return err
		}
		return unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS, int(ttl))
	})
	if err != nil {
		i.t.Fatal(err)
	}
	return fd
}

func sockaddr(a netip.Addr) unix.Sockaddr {
	if a.Is4() {
		return &unix.SockaddrInet4{Addr: a.As4()}
	}
	return &unix.SockaddrInet6{Addr: a.As16()}
}

// packet is the advertisement: RFC 3768 section 5.1, RFC 9568 section 5.2, with the
// highest priority that no owner has.
func (a attack) packet(routerID int, vip, from, to netip.Addr) []byte {
	vrrp := append([]byte{a.version<<4 | 1, byte(routerID), 254, 1, 0, 0, 0, 0}, vip.AsSlice()...)
	binary.BigEndian.PutUint16(vrrp[4:], a.interval)
	if a.version == 2 && to.Is4() {
		vrrp = append(vrrp, make([]byte, 8)...)
	}
	var pseudo []byte
	if a.version == 3 || to.Is6() { // in IPv6 keepalived has the kernel look at it
		pseudo = slices.Concat(from.AsSlice(), to.AsSlice(), binary.BigEndian.AppendUint32(nil, uint32(len(vrrp))<<16>>16|112<<16))
	}
	sum := checksum(append(pseudo, vrrp...))
	if a.broken {
		sum++
	}
	binary.BigEndian.PutUint16(vrrp[6:], sum)
	if to.Is6() {
		return vrrp
	}
	ip := slices.Concat([]byte{0x45, 0, 0, byte(20 + len(vrrp)), 0, 0, 0, 0, a.ttl, 112, 0, 0}, from.AsSlice(), to.AsSlice())
	return append(ip, vrrp...)
}

// checksum is that of IP (RFC 1071).
func checksum(b []byte) uint16 {
	var sum uint32
	for ; len(b) > 1; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// TestHardCase35Strangers: no packet of a host that is no peer reaches keepalived,
// whatever is wrong with it.
func TestHardCase35Strangers(t *testing.T) {
	testkit.Long(t)
	for name, l := range families {
		t.Run(name, func(t *testing.T) {
			c := newClusterOf(t, l)
			c.controlPlane(3)
			holder := c.nodes[c.holder(c.all()...)]
			holder.awaitState("the guard is in place", func(s State) bool { return s.Guard.InPlace })
			x, peer := newIntruder(t, c.net, l.host(66)), c.nodes[c.others(holder.name)[0]]
			for n, a := range attacksOn(l) {
				rates := []int{floodRate}
				if n == 0 {
					rates = append(rates, 5000)
				}
				for _, perSecond := range rates {
					s, _ := holder.state()
					before := dropped(s)
					_, stop := x.flood(a, apiRouterID, l.apiVIP, peer.address.Addr(), holder.address.Addr(), perSecond)
					holder.awaitState("packets are dropped: "+a.name, func(s State) bool {
						if got := c.holders(); !slices.Equal(got, []string{holder.name}) {
							t.Fatalf("%s: the VIP is on %v, want %s", a.name, got, holder.name)
						}
						return dropped(s) >= before+uint64(2*perSecond)
					})
					stop()
				}
			}
			if n := strings.Count(holder.agent.Output(), "dropped VRRP packets"); n == 0 || n > 5 {
				t.Errorf("%d lines in the log say that packets were dropped, want one a minute", n)
			}
		})
	}
}

// TestHardCase35WithoutGuard: the same packets harm keepalived with the same
// configuration, or the test above would prove nothing.
func TestHardCase35WithoutGuard(t *testing.T) {
	testkit.Long(t)
	for name, l := range families {
		t.Run(name, func(t *testing.T) {
			c := newClusterOf(t, l)
			c.controlPlane(2)
			c.holder(c.all()...)
			members := map[string]daemon.Member{}
			for name, n := range c.nodes {
				conf, err := os.ReadFile(n.Path(v1alpha1.KeepalivedConf))
				if err != nil {
					t.Fatal(err)
				}
				members[name] = daemon.Member{Addresses: []netip.Prefix{n.address}, Config: conf}
			}
			bare := daemon.NewCluster(t, l.apiVIP, members)
			x := newIntruder(t, bare.Network, l.host(66))
			for _, a := range attacksOn(l) {
				if a.broken && l.apiVIP.Is6() {
					continue // the kernel looks at that checksum itself
				}
				victim := bare.Holder()
				_, stop := x.flood(a, apiRouterID, l.apiVIP, c.nodes[c.others(victim)[0]].address.Addr(), c.nodes[victim].address.Addr(), floodRate)
				testkit.Await(t, a.name+" to harm the holder", func() bool { return !slices.Equal(bare.Holders(), []string{victim}) })
				stop()
			}
		})
	}
}

// families are the layouts that attacks are tried on.
var families = map[string]layout{"IPv4": ipv4, "IPv6": ipv6}

const (
	// apiRouterID is the API group's in both layouts.
	apiRouterID = 97
	// floodRate is more packets a second than the fast profile has advertisements.
	floodRate = 60
)

// attacksOn are those that are possible in the layout's family.
func attacksOn(l layout) (out []attack) {
	for _, a := range attacks {
		if l.apiVIP.Is4() || !a.forged {
			out = append(out, a)
		}
	}
	return out
}

// dropped is what the guard of a node has dropped.
func dropped(s State) (n uint64) {
	for _, d := range s.Guard.Dropped {
		n += d.Packets
	}
	return n
}

// TestHardCase35PeersChange: who was let through is so until keepalived has had time to
// forget it, whoever is new at once; the rules of an agent that was killed go with the
// next.
func TestHardCase35PeersChange(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	host := daemon.NewHost(t, daemon.AddNode(t, daemon.NewNetwork(t), "node", "192.168.111.11/24"))
	g := guarding{log: slog.New(slog.DiscardHandler)}
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
		g.look(now.Add(time.Hour))
		letThrough("before the reload", "192.168.111.12", "192.168.111.13")
		g.admit(group("192.168.111.14")) // the configuration before was refused
		letThrough("before the next reload", "192.168.111.12", "192.168.111.13", "192.168.111.14")
		g.applied(now)
		g.look(now.Add(guardLag - 1))
		letThrough("after the reload", "192.168.111.12", "192.168.111.13", "192.168.111.14")
		g.look(now.Add(guardLag))
		letThrough("later", "192.168.111.14")
		next := guarding{log: g.log}
		next.begin()
		letThrough("with the next agent")
		next.admit(group("192.168.111.12"))
		next.end()
		letThrough("at the end")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestHardCase35Senders: whose packets are taken, by VRRP settings.
func TestHardCase35Senders(t *testing.T) {
	peer, node, six := netip.MustParseAddr("192.0.2.12"), netip.MustParseAddr("192.0.2.13"), netip.MustParseAddr("2001:db8::13")
	nodes := []v1alpha1.Peer{{Name: "a", Addresses: []netip.Addr{node}, Elsewhere: []netip.Addr{six}}}
	vip4, vip6 := netip.MustParsePrefix("192.0.2.5/32"), netip.MustParsePrefix("2001:db8::5/128")
	peer6 := netip.MustParseAddr("2001:db8::12")
	for name, x := range map[string]struct {
		i    templates.Instance
		want []guard.Sender
	}{
		"fast": {templates.Instance{VIP: vip4, Peers: []netip.Addr{peer}, FullTTL: true, OnLink: true, AllKnown: true},
			[]guard.Sender{{From: []netip.Addr{peer}, FullTTL: true}}},
		"fast, the bootstrap is unknown": {templates.Instance{VIP: vip4, Peers: []netip.Addr{peer}, FullTTL: true},
			[]guard.Sender{{FullTTL: true}}},
		"classic": {templates.Instance{VIP: vip4, Peers: []netip.Addr{peer}, AllKnown: true},
			[]guard.Sender{{From: []netip.Addr{peer, node}}}},
		"classic, the bootstrap is unknown": {templates.Instance{VIP: vip4, Peers: []netip.Addr{peer}},
			[]guard.Sender{{From: []netip.Addr{peer, node}}, {FullTTL: true}}},
		"classic, IPv6": {templates.Instance{VIP: vip6, Peers: []netip.Addr{peer6}, AllKnown: true},
			[]guard.Sender{{From: []netip.Addr{peer6, six}}}},
		"classic, IPv6, the bootstrap is unknown": {templates.Instance{VIP: vip6, Peers: []netip.Addr{peer6}},
			[]guard.Sender{{}}},
		"multicast":       {templates.Instance{VIP: vip4}, []guard.Sender{{To: vrrpGroup4, FullTTL: true}}},
		"multicast, IPv6": {templates.Instance{VIP: vip6}, []guard.Sender{{To: vrrpGroup6, FullTTL: true}}},
		"alone": {templates.Instance{VIP: vip4, QuietGroup: "224.0.0.254"},
			[]guard.Sender{{To: netip.MustParseAddr("224.0.0.254"), FullTTL: true}}},
	} {
		if got := senders(&x.i, nodes); !reflect.DeepEqual(got, x.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, x.want)
		}
	}
}
