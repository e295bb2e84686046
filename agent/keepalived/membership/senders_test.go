package membership

import (
	"net/netip"
	"reflect"
	"testing"

	"github.com/vipgen/vipgen/agent/guard"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/templates/keepalived"
)

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
