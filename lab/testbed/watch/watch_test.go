package watch

import (
	"fmt"
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

// pair is two nodes with keepalived and the fast profile's adverts, master-1 with the higher
// priority, under a watch.
type pair struct {
	*daemon.Cluster
	*Watch
	t   *testing.T
	vip netip.Addr
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{t: t, vip: vip1}
	members := map[string]daemon.Member{}
	for i := range 2 {
		members[fmt.Sprintf("master-%d", i)] = daemon.Member{
			Addresses: []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("192.0.2.1%d/24", i))},
			Config: fmt.Appendf(nil, `vrrp_instance api {
    state BACKUP
    version 3
    interface eth0
    virtual_router_id 109
    priority %d
    advert_int 0.1
    unicast_src_ip 192.0.2.1%d
    unicast_peer {
        192.0.2.1%d
    }
    virtual_ipaddress {
        %v/32 dev eth0
    }
}
`, 40+20*i, i, 1-i, p.vip),
		}
	}
	p.Cluster = daemon.NewCluster(t, p.vip, members)
	w, err := Start(Config{Network: p.Network, VIPs: []netip.Addr{p.vip}, Nodes: []*netns.Node{p.Node("master-0"), p.Node("master-1")}})
	testkit.Must(t, err)
	p.Watch = w
	t.Cleanup(func() {
		timeline, err := w.End()
		testkit.Check(t, err)
		if t.Failed() {
			for _, s := range timeline {
				t.Logf("%-9s %v on %s from %v to %v", s.View, s.VIP, s.Node, s.From, s.To)
			}
		}
	})
	return p
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
	p := newPair(t)
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
	p := newPair(t)
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
