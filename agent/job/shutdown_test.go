package job

import (
	"net/netip"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
)

// A shutdown waits for the VIPs on the node to leave, up to the bound; without a VIP it does
// not wait.
func TestAwaitVIPs(t *testing.T) {
	testkit.Live(t)
	vip, other := netip.MustParseAddr("192.0.2.5"), netip.MustParseAddr("2001:db8::5")
	n := daemon.AddNode(t, daemon.NewNetwork(t), "node", "192.0.2.10/24", "2001:db8::10/64")
	await := func(bound time.Duration) (gone bool) {
		testkit.Must(t, n.Do(func() error { gone = AwaitVIPs([]netip.Addr{vip, other}, bound); return nil }))
		return gone
	}
	if !await(time.Hour) {
		t.Error("it is not here")
	}
	testkit.Must(t, n.AddAddress(n.Link, netip.PrefixFrom(other, 128)))
	if await(10 * time.Millisecond) {
		t.Error("it is here")
	}
	done := make(chan bool)
	go func() { done <- await(time.Hour) }()
	testkit.Run(t, n.Command(t.Context(), "ip", "address", "delete", other.String()+"/128", "dev", n.Link))
	if !<-done {
		t.Error("it has gone")
	}
}
