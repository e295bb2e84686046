package attack

import (
	"context"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/internal/vrrp/listener"
)

var families = map[string]struct{ host, victim, other, vip string }{
	"IPv4": {"192.0.2.66/24", "192.0.2.11/24", "192.0.2.12", "192.0.2.5"},
	"IPv6": {"2001:db8::66/64", "2001:db8::11/64", "2001:db8::12", "2001:db8::5"},
}

// Packets arrive at a node as requested, by unicast and by multicast: source, TTL and
// advertisement, each packet in turn.
func TestFloodArrives(t *testing.T) {
	testkit.Live(t)
	for name, f := range families {
		t.Run(name, func(t *testing.T) {
			network := daemon.NewNetwork(t)
			host, victim := daemon.AddNode(t, network, "host", f.host), daemon.AddNode(t, network, "victim", f.victim)
			peer, vip, to := netip.MustParseAddr(f.other), netip.MustParseAddr(f.vip), netip.MustParsePrefix(f.victim).Addr()
			var l *listener.Listener
			testkit.Must(t, victim.Do(func() (err error) { l, err = listener.OnLinks(); return err }))
			t.Cleanup(func() { l.Close() })
			for _, to := range []netip.Addr{to, vrrp.MulticastGroup(to.Is6())} {
				v := VRRP{Version: 3, Interval: 100 * time.Millisecond, TTL: 10, Source: Peer}
				flood, err := Start(host, 1000, v.Packet(97, vip, peer, to), v.Packet(98, vip, peer, to))
				testkit.Must(t, err)
				defer flood.Stop()
				ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
				defer cancel()
				for got := map[uint8]bool{}; !got[97] || !got[98]; {
					a, err := l.Receive(ctx)
					testkit.Must(testkit.In(t, to), err)
					if a.Destination != to { // from the previous flood
						continue
					}
					want := vrrp.Advert{Source: peer, Version: 3, RouterID: a.RouterID, Priority: vrrp.HighestPriority, Interval: v.Interval, VIPs: []netip.Addr{vip}}
					if !reflect.DeepEqual(a.Advert, want) || a.TTL != 10 {
						t.Fatalf("%+v", a)
					}
					got[a.RouterID] = true
				}
				flood.Stop()
				flood.Stop()
				if flood.Sent() < 2 {
					t.Errorf("%d packets were sent", flood.Sent())
				}
			}
		})
	}
}
