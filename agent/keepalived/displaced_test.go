package keepalived

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/templates/keepalived"
)

func TestDisplaced(t *testing.T) {
	tests := []struct {
		name, listed, own, vip string
		multicast, want        bool
	}{
		{"where it is listed", "192.0.2.11", "192.0.2.11", "192.0.2.5", false, false},
		{"elsewhere", "192.0.2.11", "192.0.2.99", "192.0.2.5", false, true},
		{"adverts reach everybody", "192.0.2.11", "192.0.2.99", "192.0.2.5", true, false},
		{"at one of several", "192.0.2.11 192.0.2.12", "192.0.2.12 198.51.100.1", "192.0.2.5", false, false},
		{"not listed", "", "192.0.2.99", "192.0.2.5", false, false},
		{"the other family is elsewhere", "192.0.2.11 2001:db8::11", "192.0.2.11 2001:db8::99", "192.0.2.5", false, false},
		{"the VIP's family is elsewhere", "192.0.2.11 2001:db8::11", "192.0.2.99 2001:db8::11", "192.0.2.5", false, true},
		{"listed in one family alone", "192.0.2.11", "192.0.2.11 2001:db8::11", "2001:db8::5", false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := &facts.Facts{Node: &v1alpha1.Node{Interfaces: []v1alpha1.Interface{{Name: "eth0"}}}}
			for _, a := range strings.Fields(tt.listed) {
				f.Listed = append(f.Listed, netip.MustParseAddr(a))
			}
			for _, a := range strings.Fields(tt.own) {
				addr := netip.MustParseAddr(a)
				f.Node.Interfaces[0].Addresses = append(f.Node.Interfaces[0].Addresses, netip.PrefixFrom(addr, addr.BitLen()-8))
			}
			vip := netip.MustParseAddr(tt.vip)
			i := keepalived.Instance{VIP: netip.PrefixFrom(vip, vip.BitLen())}
			if !tt.multicast {
				i.Peers = []netip.Addr{vip}
			}
			if got := displaced(f, []keepalived.Instance{i}); got != tt.want {
				t.Errorf("displaced: %v", got)
			}
		})
	}
}

func TestDisplacement(t *testing.T) {
	var d displacement
	began := time.Now()
	for _, step := range []struct {
		at        time.Duration
		displaced bool
		want      time.Duration
	}{
		{0, false, 0}, {time.Second, true, time.Minute}, {21 * time.Second, true, 40 * time.Second},
		{22 * time.Second, false, 0}, {23 * time.Second, true, time.Minute},
		{83 * time.Second, true, 0}, {90 * time.Second, true, 0}, {91 * time.Second, false, 0},
	} {
		if got := d.wait(began.Add(step.at), step.displaced); got != step.want {
			t.Errorf("after %v: %v, want %v", step.at, got, step.want)
		}
	}
}

func TestDeaf(t *testing.T) {
	own, other := netip.MustParseAddr("192.0.2.10"), netip.MustParseAddr("192.0.2.40")
	unicast := keepalived.Instance{Source: own, Peers: []netip.Addr{netip.MustParseAddr("192.0.2.11")}}
	for _, tt := range []struct {
		name     string
		instance keepalived.Instance
		have     []netip.Addr
		want     bool
	}{
		{"its address is there", unicast, []netip.Addr{other, own}, false},
		{"its address is gone", unicast, []netip.Addr{other}, true},
		{"no address is left", unicast, nil, true},
		{"multicast is heard at any address", keepalived.Instance{}, nil, false},
	} {
		if got := deaf([]keepalived.Instance{tt.instance}, tt.have); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}

func TestMoved(t *testing.T) {
	old, fresh, peer := netip.MustParseAddr("192.0.2.10"), netip.MustParseAddr("192.0.2.40"), []netip.Addr{netip.MustParseAddr("192.0.2.11")}
	at := func(a netip.Addr) []keepalived.Instance {
		return []keepalived.Instance{{Name: "API_0", Source: a, Peers: peer}}
	}
	var s sources
	for _, step := range []struct {
		name      string
		instances []keepalived.Instance
		have      []netip.Addr
		want      bool
	}{
		{"at first", at(old), []netip.Addr{old}, false},
		{"the link is down", nil, nil, false},
		{"the link is up", at(old), []netip.Addr{old}, false},
		{"one more address, which is preferred", at(fresh), []netip.Addr{old, fresh}, false},
		{"the first one again", at(old), []netip.Addr{old, fresh}, false},
		{"another address in its place", at(fresh), []netip.Addr{fresh}, true},
		{"it stays", at(fresh), []netip.Addr{fresh}, false},
		{"the first one in its place", at(old), []netip.Addr{old}, true},
	} {
		if got := s.moved(step.instances, step.have); got != step.want {
			t.Errorf("%s: %t", step.name, got)
		}
	}
}
