package membership

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/agent/guard"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/netdump"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/internal/vrrp/listener"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// A node that receives no advertisements does not take a VIP that another host answers for.
func TestPollHolders(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	const conf = `vrrp_instance V { interface %s
  version %d
  virtual_router_id %d
  priority 100
  advert_int %s
  unicast_src_ip %v
  unicast_peer { %v }
  virtual_ipaddress { %v/%d }
}
`
	for _, tt := range []struct {
		name             string
		holder, node     string // addresses
		other, vip       string // another peer of the holder; the VIP
		version, routerd int
		interval         string
	}{
		{"IPv4", "192.0.2.10/24", "192.0.2.11/24", "192.0.2.12", "192.0.2.5", 3, 7, "0.04"},
		{"IPv6", "2001:db8::10/64", "2001:db8::11/64", "2001:db8::12", "2001:db8::5", 3, 8, "0.04"},
		{"VRRPv2", "192.0.2.10/24", "192.0.2.11/24", "192.0.2.12", "192.0.2.5", 2, 9, "1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := daemon.NewNetwork(t)
			at := func(name, prefix string) (*daemon.Host, netip.Addr) {
				return daemon.NewHost(t, daemon.AddNode(t, n, name, prefix)), netip.MustParsePrefix(prefix).Addr()
			}
			holder, from := at("holder", tt.holder)
			node, source := at("node", tt.node)
			vip := netip.MustParseAddr(tt.vip)
			ask := func() []netip.Addr {
				t.Helper()
				var found []netip.Addr
				err := node.Do(func() (err error) {
					found, _, err = pollHolders([]keepalived.Instance{{
						Name: "V", Interface: node.Link, RouterID: tt.routerd, AdvertInterval: tt.interval,
						Source: source, Peers: []netip.Addr{from}, VIP: netip.PrefixFrom(vip, vip.BitLen()), Version: tt.version,
					}}, nil)
					return err
				})
				testkit.Must(t, err)
				return found
			}
			// expect repeats the query until the answer matches. A wrong one fails the test on
			// a machine that was on time: advertisements and answers for the VIP have half a
			// second.
			expect := func(what string, want ...netip.Addr) {
				t.Helper()
				testkit.Await(t, what, func() bool {
					machine := testkit.StartStopwatch()
					found := ask()
					late := machine.End()
					if !slices.Equal(found, want) && late < solicitEvery {
						t.Fatalf("%s: %v are held by hosts that do not know the node, want %v", what, found, want)
					}
					return slices.Equal(found, want)
				})
			}
			run := func(peer string) (stop func()) {
				t.Helper()
				holder.Write("/etc/keepalived/keepalived.conf", fmt.Appendf(nil, conf, holder.Link, tt.version, tt.routerd,
					tt.interval, from, peer, vip, vip.BitLen()))
				p := holder.Start(nil, "keepalived", "--dont-fork", "--vrrp", "--log-console", "--no-syslog")
				testkit.Await(t, "the holder", func() bool {
					held := false
					err := holder.Do(func() error {
						list, err := netdump.Addresses()
						for _, a := range list {
							held = held || netdump.IP(a) == vip && a.Flags&unix.IFA_F_TENTATIVE == 0
						}
						return err
					})
					return err == nil && held
				})
				return func() { p.Stop() }
			}

			expect("nobody holds the VIP")
			stop := run(tt.other)
			if out, err := holder.Run(nil, "nft", loseFirst); err != nil {
				t.Fatal(err, out)
			}
			expect("the holder's peer is another", vip)
			if out, _ := holder.Run(nil, "nft", "list", "ruleset"); !strings.Contains(out, "packets 1 ") {
				t.Errorf("no question was lost: %s", out)
			}
			stop()
			run(source.String())
			expect("the holder knows the node")
		})
	}
}

// loseFirst are rules that drop the first query for a.
const loseFirst = `
table arp lose { chain in { type filter hook input priority 0;
  arp operation request limit rate 1/hour burst 1 packets counter drop; }; }
table ip6 lose { chain in { type filter hook input priority 0;
  icmpv6 type nd-neighbor-solicit limit rate 1/hour burst 1 packets counter drop; }; }
`

// A node attributes to a holder only packets that keepalived would accept.
func TestAccepts(t *testing.T) {
	peer, stranger, node := netip.MustParseAddr("192.0.2.11"), netip.MustParseAddr("192.0.2.66"), netip.MustParseAddr("192.0.2.31")
	vip := netip.MustParseAddr("192.0.2.5")
	fast := keepalived.Instance{
		Version: 3, RouterID: 7, AdvertInterval: "0.04", VIP: netip.PrefixFrom(vip, 32),
		Peers: []netip.Addr{peer}, FullTTL: true, OnLink: true, AllKnown: true,
	}
	bootstrapUnknown := fast
	bootstrapUnknown.OnLink, bootstrapUnknown.AllKnown = false, false
	classic := fast
	classic.Version, classic.AdvertInterval, classic.FullTTL, classic.OnLink = 2, "1", false, false
	classicUnknown := classic
	classicUnknown.AllKnown = false
	right := listener.Received{TTL: 255, Advert: vrrp.Advert{
		Source: peer, Version: 3, RouterID: 7, Priority: 100, Interval: 40 * time.Millisecond, VIPs: []netip.Addr{vip},
	}}
	old := right
	old.Version, old.Interval = 2, time.Second
	with := func(a listener.Received, change func(*listener.Received)) listener.Received { change(&a); return a }
	for _, tt := range []struct {
		name     string
		instance keepalived.Instance
		advert   listener.Received
		want     bool
	}{
		{"a peer's", fast, right, true},
		{"of another interval, which VRRPv3's backups take", fast, with(right, func(a *listener.Received) { a.Interval *= 2 }), true},
		{"from beyond the link", fast, with(right, func(a *listener.Received) { a.TTL = 254 }), false},
		{"of another version", fast, old, false},
		{"of another router", fast, with(right, func(a *listener.Received) { a.RouterID = 8 }), false},
		{"of another VIP", fast, with(right, func(a *listener.Received) { a.VIPs = []netip.Addr{peer} }), false},
		{"a stranger's", fast, with(right, func(a *listener.Received) { a.Source = stranger }), false},
		{"no advert", fast, listener.Received{}, false},
		{"perhaps the bootstrap's", bootstrapUnknown, with(right, func(a *listener.Received) { a.Source = stranger }), true},
		{"perhaps the bootstrap's, from beyond the link", bootstrapUnknown, with(right, func(a *listener.Received) { a.Source, a.TTL = stranger, 64 }), false},
		{"of the operator's keepalived", classic, with(old, func(a *listener.Received) { a.TTL = 64 }), true},
		{"of the operator's keepalived on a node of another group", classic, with(old, func(a *listener.Received) { a.Source = node }), true},
		{"a stranger's, classic", classic, with(old, func(a *listener.Received) { a.Source = stranger }), false},
		{"of another interval, classic", classic, with(old, func(a *listener.Received) { a.Interval *= 2 }), false},
		{"perhaps the operator's bootstrap's", classicUnknown, with(old, func(a *listener.Received) { a.Source = stranger }), true},
		{"of a stranger beyond the link", classicUnknown, with(old, func(a *listener.Received) { a.Source, a.TTL = stranger, 64 }), false},
	} {
		nodes := []v1alpha1.Peer{{Name: "worker-1", Role: "worker", Addresses: []netip.Addr{node}}}
		testkit.Equal(testkit.In(t, tt.name), tt.want, accepts(&tt.instance, nodes, tt.advert))
	}
}

// FuzzListen feeds arbitrary packets of the protocol from arbitrary hosts.
func FuzzListen(f *testing.F) {
	vip := netip.MustParseAddr("192.0.2.5")
	f.Add([]byte{0x31, 7, 100, 1, 0, 4, 0, 0, 192, 0, 2, 5}, 255)
	f.Add([]byte{0x21, 7, 100, 255, 1, 1}, 64)
	i := keepalived.Instance{
		Version: 3, RouterID: 7, AdvertInterval: "0.04", VIP: netip.PrefixFrom(vip, 32),
		Peers: []netip.Addr{netip.MustParseAddr("192.0.2.11")}, FullTTL: true, OnLink: true, AllKnown: true,
	}
	f.Fuzz(func(t *testing.T, data []byte, ttl int) {
		for _, from := range []string{"192.0.2.11", "192.0.2.66", "2001:db8::11"} {
			source := netip.MustParseAddr(from)
			a, err := vrrp.ParseAdvert(source, data)
			if err != nil {
				continue
			}
			if accepts(&i, nil, listener.Received{Advert: *a, TTL: ttl}) && (from != "192.0.2.11" || ttl != 255 || data[0] != 0x31 || data[1] != 7) {
				t.Errorf("%x from %s with TTL %d is taken", data, from, ttl)
			}
		}
	})
}

// TestHardCase35Senders lists the accepted senders by VRRP settings.
func TestHardCase35Senders(t *testing.T) {
	peer, node, six := netip.MustParseAddr("192.0.2.12"), netip.MustParseAddr("192.0.2.13"), netip.MustParseAddr("2001:db8::13")
	nodes := []v1alpha1.Peer{{Name: "a", Addresses: []netip.Addr{node}, Elsewhere: []netip.Addr{six}}}
	vip4, vip6 := netip.MustParsePrefix("192.0.2.5/32"), netip.MustParsePrefix("2001:db8::5/128")
	peer6 := netip.MustParseAddr("2001:db8::12")
	for name, x := range map[string]struct {
		i    keepalived.Instance
		want []guard.Sender
	}{
		"fast": {keepalived.Instance{VIP: vip4, Peers: []netip.Addr{peer}, FullTTL: true, OnLink: true, AllKnown: true},
			[]guard.Sender{{From: []netip.Addr{peer}, FullTTL: true}}},
		"fast, the bootstrap is unknown": {keepalived.Instance{VIP: vip4, Peers: []netip.Addr{peer}, FullTTL: true},
			[]guard.Sender{{FullTTL: true}}},
		"classic": {keepalived.Instance{VIP: vip4, Peers: []netip.Addr{peer}, AllKnown: true},
			[]guard.Sender{{From: []netip.Addr{peer, node}}}},
		"classic, the bootstrap is unknown": {keepalived.Instance{VIP: vip4, Peers: []netip.Addr{peer}},
			[]guard.Sender{{From: []netip.Addr{peer, node}}, {FullTTL: true}}},
		"classic, IPv6": {keepalived.Instance{VIP: vip6, Peers: []netip.Addr{peer6}, AllKnown: true},
			[]guard.Sender{{From: []netip.Addr{peer6, six}}}},
		"classic, IPv6, the bootstrap is unknown": {keepalived.Instance{VIP: vip6, Peers: []netip.Addr{peer6}},
			[]guard.Sender{{}}},
		"multicast":       {keepalived.Instance{VIP: vip4}, []guard.Sender{{To: vrrp.MulticastGroup4, FullTTL: true}}},
		"multicast, IPv6": {keepalived.Instance{VIP: vip6}, []guard.Sender{{To: vrrp.MulticastGroup6, FullTTL: true}}},
		"alone": {keepalived.Instance{VIP: vip4, QuietGroup: "224.0.0.254"},
			[]guard.Sender{{To: netip.MustParseAddr("224.0.0.254"), FullTTL: true}}},
	} {
		if got := Senders(&x.i, nodes); !reflect.DeepEqual(got, x.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, x.want)
		}
	}
}
