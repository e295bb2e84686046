package attack

import (
	"context"
	"encoding/json"
	"math/rand/v2"
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

func TestStartRefuses(t *testing.T) {
	if _, err := Start(nil, 1); err == nil {
		t.Error("a flood of nothing starts")
	}
	if _, err := Start(nil, 0, Packet{}); err == nil {
		t.Error("a flood of no packets a second starts")
	}
}

// A seed determines the Node, which is valid JSON; other seeds give others.
func TestNewNode(t *testing.T) {
	made := func(seed uint64) string {
		data, err := json.Marshal(NewNode(rand.New(rand.NewPCG(seed, 1)), "192.0.2.%d", "192.0.2.11"))
		testkit.Must(t, err)
		return string(data)
	}
	first, again, other := made(1), made(1), made(2)
	if first != again || first == other {
		t.Error("two seeds give the same Node")
	}
}

// No packet is one that a node of the group could have sent.
func TestVRRPsAreWrong(t *testing.T) {
	names := map[string]bool{}
	for _, v := range VRRPs {
		if names[v.Name] || v.Name == "" {
			t.Errorf("%q is there twice", v.Name)
		}
		names[v.Name] = true
		if v.Source == Peer && v.TTL == 255 && v.Version == 3 && !v.Broken {
			t.Errorf("%s is a peer's: nothing on a node can tell it from that", v.Name)
		}
	}
}
