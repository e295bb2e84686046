package watch

import (
	"net/netip"
	"testing"

	"go.uber.org/goleak"

	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Two nodes that have the VIP at once are seen, until one of them has no power any more.
func TestSplitBrain(t *testing.T) {
	network := daemon.NewNetwork(t)
	first, second := daemon.AddNode(t, network, "master-0", "192.0.2.10/24"), daemon.AddNode(t, network, "master-1", "192.0.2.11/24")
	w, err := Start(Config{Network: network, VIPs: []netip.Addr{vip1}, Nodes: []*netns.Node{first, second}})
	testkit.Must(t, err)
	t.Cleanup(func() { w.End() })
	for _, n := range []*netns.Node{first, second} {
		testkit.Must(t, n.AddAddress(n.Link, netip.PrefixFrom(vip1, 32)))
	}
	testkit.Await(t, "a split brain", func() bool { return w.Timeline().In(Addresses).SplitBrain(0) > 0 })
	w.Off("master-1")
	off := w.now()
	timeline, err := w.End()
	testkit.Must(t, err)
	for _, s := range timeline.In(Addresses) {
		if s.Node == "master-1" && s.To > off {
			t.Errorf("%+v, without power since %v", s, off)
		}
	}
}
