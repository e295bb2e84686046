package v1alpha1

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

func networkList(s string) (out []netip.Prefix) {
	for f := range strings.FieldsSeq(s) {
		out = append(out, netip.MustParsePrefix(f))
	}
	return out
}

// Nodes are in the machine networks, unless a VIP is in none of them (hard case 44).
func TestNodeNetworks(t *testing.T) {
	nic := func(prefixes ...string) []Interface { return []Interface{iface("a", true, true, prefixes...)} }
	tests := []struct {
		name, machines, vips string
		external             bool
		interfaces           []Interface
		want, assumed        string
	}{
		{"VIPs inside", "192.0.2.0/24", "192.0.2.5 192.0.2.6", false, nic("192.0.2.10/24"),
			"192.0.2.0/24", "192.0.2.0/24"},
		{"a remote worker, VIPs inside", "192.0.2.0/24 198.51.100.0/24", "192.0.2.5", false, nic("198.51.100.10/25"),
			"192.0.2.0/24 198.51.100.0/24", "192.0.2.0/24 198.51.100.0/24"},
		{"VIPs outside: the prefix is the interface's", "10.0.0.0/16", "192.0.2.5 192.0.2.6", false, nic("192.0.3.10/23"),
			"192.0.2.0/23", "192.0.2.0/24"},
		{"the interface with the VIP's subnet, not that of the default route", "10.0.0.0/16", "192.0.2.5", false,
			[]Interface{iface("a", true, true, "198.51.100.10/24"), iface("b", false, false, "192.0.2.10/24")},
			"192.0.2.0/24", "192.0.2.0/24"},
		{"the narrowest of overlapping networks", "10.0.0.0/16", "192.0.2.5", false,
			[]Interface{iface("a", true, true, "192.0.3.10/16"), iface("b", false, false, "192.0.2.10/24")},
			"192.0.2.0/24", "192.0.2.0/24"},
		{"no subnet of the VIP: the default route's (hard case 11)", "10.0.0.0/16", "192.0.2.5", false,
			[]Interface{iface("a", false, false, "10.0.1.10/24"), iface("b", true, true, "198.51.100.10/24")},
			"198.51.100.0/24", "192.0.2.0/24"},
		{"neither: nothing is known yet", "10.0.0.0/16", "192.0.2.5", false, []Interface{iface("a", false, false, "10.0.1.10/24")},
			"", "192.0.2.0/24"},
		{"no interface", "10.0.0.0/16", "192.0.2.5", false, nil,
			"", "192.0.2.0/24"},
		{"one family outside", "192.0.2.0/24 fd00:10::/48", "192.0.2.5 2001:db8::5", false, nic("192.0.2.10/24", "2001:db8::10/56"),
			"192.0.2.0/24 2001:db8::/56", "192.0.2.0/24 2001:db8::/64"},
		{"both outside", "10.0.0.0/16 fd00:10::/48", "192.0.2.5 2001:db8::5 192.0.2.6 2001:db8::6", false, nic("192.0.2.10/24", "2001:db8::10/64", "10.0.1.10/16"),
			"192.0.2.0/24 2001:db8::/64", "192.0.2.0/24 2001:db8::/64"},
		{"a machine network with a VIP counts", "10.0.0.0/16 198.51.100.0/24", "192.0.2.5 198.51.100.17", false, nic("192.0.2.10/24", "198.51.100.10/24"),
			"198.51.100.0/24 192.0.2.0/24", "198.51.100.0/24 192.0.2.0/24"},
		{"a family without machine networks", "192.0.2.0/24", "192.0.2.5 2001:db8::5", false, nic("192.0.2.10/24", "2001:db8::10/64"),
			"192.0.2.0/24 2001:db8::/64", "192.0.2.0/24 2001:db8::/64"},
		{"a load balancer elsewhere", "192.0.2.0/24", "203.0.113.5", true, nic("192.0.2.10/24"),
			"192.0.2.0/24", "192.0.2.0/24"},
		{"a load balancer elsewhere, and nodes", "10.0.0.0/16", "203.0.113.5", true, nic("192.0.2.10/24"),
			"10.0.0.0/16 192.0.2.0/24", "10.0.0.0/16"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := ClusterConfigSpec{LoadBalancer: LoadBalancerInCluster, MachineNetworks: networkList(tt.machines)}
			if tt.external {
				s.LoadBalancer = LoadBalancerExternal
			}
			for f := range strings.FieldsSeq(tt.vips) {
				s.Groups = append(s.Groups, Group{VIPs: []netip.Addr{netip.MustParseAddr(f)}})
			}
			testkit.Equal(t, tt.want, strings.Trim(fmt.Sprint(s.NodeNetworks(tt.interfaces)), "[]"))
			testkit.Equal(t, tt.assumed, strings.Trim(fmt.Sprint(s.AssumedNetworks()), "[]"))
		})
	}
}
