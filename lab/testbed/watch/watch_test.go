package watch

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, cfg Config) *Watch {
	t.Helper()
	w, err := Start(cfg)
	testkit.Must(t, err)
	t.Cleanup(func() {
		timeline, err := w.End()
		testkit.Check(t, err)
		if t.Failed() {
			for _, s := range timeline {
				t.Logf("%-9s %v on %s from %v to %v", s.View, s.VIP, s.Node, s.From, s.To)
			}
		}
	})
	return w
}

// conf is a keepalived.conf with the priority and the settings of an instance.
func conf(vip netip.Addr, priority int, version int, settings string) []byte {
	return fmt.Appendf(nil, `global_defs {
    router_id test
}
vrrp_instance api {
    state BACKUP
    version %d
    interface eth0
    virtual_router_id 109
    priority %d
    %s
    virtual_ipaddress {
        %v dev eth0
    }
}
`, version, priority, settings, netip.PrefixFrom(vip, vip.BitLen()))
}

// pair is two nodes with keepalived, master-1 with the higher priority, under a watch.
type pair struct {
	*daemon.Cluster
	*Watch
	t   *testing.T
	vip netip.Addr
}

func newPair(t *testing.T, vip string, members map[string]daemon.Member) *pair {
	t.Helper()
	p := &pair{t: t, vip: netip.MustParseAddr(vip)}
	p.Cluster = daemon.NewCluster(t, p.vip, members)
	p.Watch = start(t, Config{Network: p.Network, VIPs: []netip.Addr{p.vip}, Nodes: []*netns.Node{p.Node("master-0"), p.Node("master-1")}})
	return p
}

// fast is a pair with the fast profile's adverts between IPv4 addresses.
func fast(t *testing.T) *pair {
	t.Helper()
	vip := netip.MustParseAddr("192.0.2.5")
	unicast := "advert_int 0.1\n unicast_src_ip 192.0.2.1%d\n unicast_peer { \n 192.0.2.1%d \n }"
	return newPair(t, vip.String(), map[string]daemon.Member{
		"master-0": {Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.10/24")}, Config: conf(vip, 40, 3, fmt.Sprintf(unicast, 0, 1))},
		"master-1": {Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.11/24")}, Config: conf(vip, 60, 3, fmt.Sprintf(unicast, 1, 0))},
	})
}

// last returns the last span of a node in a view.
func (p *pair) last(view View, node string) (Span, bool) {
	t := p.Timeline().In(view)
	for _, s := range slices.Backward(t) {
		if s.Node == node && s.VIP == p.vip {
			return s, true
		}
	}
	return Span{}, false
}

// holds reports whether a node has held the VIP after since, in one view.
func (p *pair) holds(view View, node string, since time.Duration) bool {
	s, ok := p.last(view, node)
	return ok && s.To > since
}

// awaitAlone waits until a node alone has held the VIP, in both views, for some
// adverts.
func (p *pair) awaitAlone(node, other string) {
	p.t.Helper()
	for _, view := range []View{Addresses, Capture} {
		var since time.Duration
		testkit.Await(p.t, fmt.Sprintf("%s to hold the VIP alone (%s)", node, view), func() bool {
			if s, ok := p.last(view, other); ok {
				since = s.To
			}
			return p.holds(view, node, since+500*time.Millisecond)
		})
	}
}

// A holder that loses power ends with its last advertisement, and with the report of the test
// that powered it off.
func TestPowerLoss(t *testing.T) {
	p := fast(t)
	p.awaitAlone("master-1", "master-0")
	p.Off("master-1")
	off := p.now()
	p.Crash("master-1")
	gone := p.now()
	p.awaitAlone("master-0", "master-1")
	if s, _ := p.last(Addresses, "master-1"); s.To > off {
		t.Errorf("master-1 had the address until %v, and no power from %v on", s.To, off)
	}
	if s, _ := p.last(Capture, "master-1"); s.To > gone {
		t.Errorf("master-1 claimed the VIP at %v, and was gone at %v", s.To, gone)
	}
	// An address on its link does not count until it has power again. It may still exist:
	// keepalived was killed while it was removing it.
	testkit.Run(t, p.Node("master-1").Command(t.Context(), "ip", "address", "replace", p.vip.String()+"/32", "dev", "eth0"))
	testkit.Await(t, "the address to be noted", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.present) == 2
	})
	if s, _ := p.last(Addresses, "master-1"); s.To > off {
		t.Errorf("master-1 has the address at %v, without power since %v", s.To, off)
	}
	p.On("master-1")
	if s, _ := p.last(Addresses, "master-1"); s.From < gone {
		t.Errorf("master-1 has power again, and has had the address since %v, want after %v", s.From, gone)
	}
}

// Two nodes that do not receive each other's advertisements both hold the VIP.
func TestSplitBrain(t *testing.T) {
	p := fast(t)
	p.awaitAlone("master-1", "master-0")
	for _, name := range []string{"master-0", "master-1"} {
		p.deafen(name, "add table inet deaf; add chain inet deaf in { type filter hook input priority 0; }; add rule inet deaf in ip protocol 112 drop")
	}
	long := 300 * time.Millisecond
	for _, view := range []View{Addresses, Capture} {
		testkit.Await(t, fmt.Sprintf("split brain (%s)", view), func() bool { return p.Timeline().In(view).SplitBrain(long) >= long })
	}
	for _, name := range []string{"master-0", "master-1"} {
		p.deafen(name, "delete table inet deaf")
	}
	p.awaitAlone("master-1", "master-0")
	for _, o := range p.Timeline().Overlaps(long) {
		if !slices.Contains(o.Nodes[:], "master-0") || !slices.Contains(o.Nodes[:], "master-1") || o.VIP != p.vip {
			t.Errorf("split brain: %+v", o)
		}
	}
}

func (p *pair) deafen(node, rules string) {
	p.t.Helper()
	cmd := p.Node(node).Command(p.t.Context(), "nft", "-f", "-")
	cmd.Stdin = strings.NewReader(rules + "\n")
	testkit.Run(p.t, cmd)
}

// A VIP that a dead keepalived left behind is still claimed by its node, which answers for it.
func TestLeftBehind(t *testing.T) {
	n := daemon.NewNetwork(t)
	var nodes []*netns.Node
	for i, name := range []string{"client", "master-0"} {
		node := daemon.AddNode(t, n, name, fmt.Sprintf("192.0.2.1%d/24", i), fmt.Sprintf("2001:db8::1%d/64", i))
		nodes = append(nodes, node)
	}
	client, master := nodes[0], nodes[1]
	vips := []netip.Addr{netip.MustParseAddr("192.0.2.5"), netip.MustParseAddr("2001:db8::5")}
	before := netip.PrefixFrom(vips[0], 32)
	testkit.Must(t, master.AddAddress("eth0", before))
	since := time.Now().Add(-time.Hour)
	w := start(t, Config{Network: n, VIPs: vips, Nodes: nodes, Since: since})
	testkit.Must(t, master.AddAddress("eth0", netip.PrefixFrom(vips[1], 128)))
	for _, vip := range vips {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		conn, err := client.DialContext(ctx, "tcp", net.JoinHostPort(vip.String(), "6443"))
		if err == nil {
			conn.Close()
			t.Error("a host answered")
		}
		for _, view := range []View{Addresses, Capture} {
			testkit.Await(t, fmt.Sprintf("%v to be held (%s)", vip, view), func() bool {
				return slices.ContainsFunc(w.Timeline(), func(s Span) bool {
					return s.View == view && s.VIP == vip && s.Node == "master-0" && s.From >= time.Hour
				})
			})
		}
	}
	for _, s := range w.Timeline() {
		testkit.Equal(t, "master-0", s.Node)
	}
}
