package firewall

import (
	"net/netip"
	"testing"

	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
)

func TestValidate(t *testing.T) {
	addrs := testkit.Addrs
	for _, tt := range []struct {
		name string
		in   Redirect
		want []string
	}{
		{"both families", api, nil},
		{"nothing to redirect", Redirect{}, nil},
		{"no address", Redirect{VIPs: []netip.Addr{{}}, From: 1, To: 2}, []string{"VIP invalid IP is not"}},
		{"IPv4 in IPv6", Redirect{VIPs: addrs("::ffff:192.0.2.1"), From: 1, To: 2}, []string{"is not a plain unicast address"}},
		{"zone", Redirect{VIPs: addrs("fe80::1%eth0"), From: 1, To: 2}, []string{"is not a plain unicast address"}},
		{"multicast", Redirect{VIPs: addrs("224.0.0.18"), From: 1, To: 2}, []string{"is not a plain unicast address"}},
		{"unspecified", Redirect{VIPs: addrs("::"), From: 1, To: 2}, []string{"is not a plain unicast address"}},
		{"twice", Redirect{VIPs: addrs("192.0.2.1", "192.0.2.1"), From: 1, To: 2}, []string{"VIP 192.0.2.1 is listed twice"}},
		{"ports", Redirect{VIPs: addrs("192.0.2.1"), From: 0, To: 65536}, []string{"port 0 is not", "port 65536 is not"}},
		{"the node's address is of another family", Redirect{VIPs: addrs("192.0.2.1"), From: 1, To: 2, Local: map[netip.Addr]netip.Addr{addrs("192.0.2.1")[0]: addrs("2001:db8::1")[0]}},
			[]string{"2001:db8::1 is not an address of the node for VIP 192.0.2.1"}},
		{"loopback where HAProxy is for everybody", Redirect{VIPs: addrs("192.0.2.1"), From: 1, To: 2, Own: true, Local: map[netip.Addr]netip.Addr{addrs("192.0.2.1")[0]: addrs("127.0.0.1")[0]}},
			[]string{"127.0.0.1 is not an address of the node for VIP 192.0.2.1"}},
		{"loopback on a compute node", compute, nil},
		{"same port", Redirect{VIPs: addrs("192.0.2.1"), From: 6443, To: 6443}, []string{"port 6443 would be redirected to itself"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.in.Validate()
			testkit.Equal(t, tt.want == nil, err == nil)
			for _, want := range tt.want {
				testkit.Fails(t, err, want)
			}
		})
	}
}

func TestHardCase06EveryVIPBothHooksBothFamilies(t *testing.T) {
	l := newLab(t)
	l.ensure(api)
	for _, from := range []*netns.Node{l.client, l.node} {
		for _, vip := range vips {
			l.reaches(from, vip, 6443, "9445")
			l.reaches(from, vip, 9445, "9445")
			l.reaches(from, vip, 22623, "22623")
		}
		for _, own := range []string{"192.0.2.1", "2001:db8::1"} {
			l.reaches(from, netip.MustParseAddr(own), 6443, "6443")
		}
	}
	l.do(remove)
	if l.tableIsThere() {
		t.Error("the table outlived Remove")
	}
	for _, vip := range vips {
		l.reaches(l.client, vip, 6443, "6443")
		l.reaches(l.node, vip, 6443, "6443")
	}
	l.do(remove) // nothing to do
}

func TestHardCase06PresentComparesExactly(t *testing.T) {
	tests := []struct {
		name string
		nft  []string // each a command
	}{
		{"everything flushed", []string{"flush ruleset"}},
		{"table deleted", []string{"delete table inet vipgen"}},
		{"rules flushed", []string{"flush table inet vipgen"}},
		{"one hook's rules flushed", []string{"flush chain inet vipgen output"}},
		{"one hook gone", []string{"flush chain inet vipgen output", "delete chain inet vipgen output"}},
		{"rule added", []string{"insert rule inet vipgen prerouting accept"}},
		{"chain added", []string{"add chain inet vipgen more"}},
		{"table dormant", []string{"add table inet vipgen { flags dormant; }"}},
		{"other hook", []string{"delete table inet vipgen", "add table inet vipgen",
			"add chain inet vipgen output { type nat hook output priority 0; }",
			"add chain inet vipgen prerouting { type nat hook prerouting priority 0; }"}},
		{"policy", []string{"add chain inet vipgen prerouting { policy drop; }"}},
	}
	l := newLab(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l.ensure(api)
			for _, command := range tt.nft {
				l.nft(command)
			}
			if l.present(api) {
				t.Errorf("present in\n%s", l.nft("list", "ruleset"))
			}
			if !l.ensure(api) {
				t.Error("nothing was changed")
			}
			if !l.present(api) || l.ensure(api) {
				t.Errorf("not in place again:\n%s", l.nft("list", "ruleset"))
			}
		})
	}
}
