package v1alpha1

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

func iface(name string, route4, route6 bool, prefixes ...string) Interface {
	i := Interface{Name: name, DefaultRoute4: route4, DefaultRoute6: route6}
	for _, p := range prefixes {
		i.Addresses = append(i.Addresses, netip.MustParsePrefix(p))
	}
	return i
}

func TestBind(t *testing.T) {
	for _, tt := range []struct {
		name       string
		interfaces []Interface
		vip        string
		want       string // "interface source", empty where the node has none
	}{
		{"one network", []Interface{iface("a", true, true, "192.0.2.10/24")}, "192.0.2.2", "a 192.0.2.10/24"},
		{"the network beats the default route", []Interface{iface("a", true, true, "198.51.100.10/24"), iface("b", false, false, "192.0.2.10/24")}, "192.0.2.2", "b 192.0.2.10/24"},
		{"the narrowest of overlapping networks (hard case 11)", []Interface{iface("a", true, true, "192.0.0.10/16"), iface("b", false, false, "192.0.2.10/24"), iface("c", false, false, "192.0.2.11/20")}, "192.0.2.2", "b 192.0.2.10/24"},
		{"the first of equal ones", []Interface{iface("b", false, false, "192.0.2.10/24"), iface("a", true, true, "192.0.2.11/24")}, "192.0.2.2", "b 192.0.2.10/24"},
		{"no network: the default route (hard case 11)", []Interface{iface("a", false, false, "198.51.100.10/24"), iface("b", true, false, "203.0.113.10/24")}, "192.0.2.2", "b 203.0.113.10/24"},
		{"default routes family by family", []Interface{iface("a", true, false, "198.51.100.10/24", "2001:db8:1::10/64"), iface("b", false, true, "203.0.113.10/24", "2001:db8:2::10/64")}, "2001:db8::2", "b 2001:db8:2::10/64"},
		{"no default route either", []Interface{iface("a", false, false, "198.51.100.10/24")}, "192.0.2.2", "a 198.51.100.10/24"},
		{"a host prefix (hard case 10)", []Interface{iface("a", false, true, "2001:db8::10/128")}, "2001:db8::2", "a 2001:db8::10/128"},
		{"the second address of an interface", []Interface{iface("a", true, true, "198.51.100.10/24", "192.0.2.10/24")}, "192.0.2.2", "a 192.0.2.10/24"},
		{"only the other family", []Interface{iface("a", true, true, "192.0.2.10/24")}, "2001:db8::2", ""},
		{"no interface", nil, "192.0.2.2", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := &Node{Interfaces: tt.interfaces}
			got := ""
			if b, ok := n.Bind(netip.MustParseAddr(tt.vip)); ok {
				got = b.Interface + " " + b.Source.String()
			}
			testkit.Equal(t, tt.want, got)
		})
	}
}

// The operator's own keepalived sends from kubelet's address.
func TestHardCase46BindAsListed(t *testing.T) {
	eth0 := iface("eth0", true, true, "192.168.111.30/24", "2001:db8:1::30/64", "fd99:7::30/64")
	eth1 := iface("eth1", false, false, "172.22.0.30/24", "2001:db8:2::30/64")
	for name, tt := range map[string]struct {
		role, vip string
		listed    []string // nil: the cluster does not list the node
		want      string
		asListed  bool
	}{
		"not in the VIP's prefix":       {RoleMaster, "2001:db8:1::5", []string{"192.168.111.30", "fd99:7::30", "2001:db8:1::30"}, "eth0 fd99:7::30/64", true},
		"the other family":              {RoleMaster, "192.168.111.5", []string{"192.168.111.30", "fd99:7::30"}, "eth0 192.168.111.30/24", true},
		"another interface":             {RoleMaster, "2001:db8:1::5", []string{"2001:db8:2::30"}, "eth1 2001:db8:2::30/64", true},
		"one that the node has not":     {RoleMaster, "2001:db8:1::5", []string{"fd99:7::99"}, "eth0 2001:db8:1::30/64", true},
		"listed in the other one alone": {RoleMaster, "2001:db8:1::5", []string{"192.168.111.30"}, "eth0 2001:db8:1::30/64", true},
		"not listed":                    {RoleMaster, "2001:db8:1::5", nil, "eth0 2001:db8:1::30/64", false},
		"the bootstrap never is":        {RoleBootstrap, "2001:db8:1::5", nil, "eth0 2001:db8:1::30/64", true},
	} {
		n := &Node{Role: tt.role, Interfaces: []Interface{eth0, eth1}}
		for _, a := range tt.listed {
			n.Listed = append(n.Listed, netip.MustParseAddr(a))
		}
		b, ok := n.BindAsListed(netip.MustParseAddr(tt.vip))
		if got := b.Interface + " " + b.Source.String(); !ok || got != tt.want || b.Network.IsValid() == tt.asListed {
			t.Errorf("%s: got %s, as listed %v; want %s, %v", name, got, !b.Network.IsValid(), tt.want, tt.asListed)
		}
	}
	peer := Peer{Addresses: []netip.Addr{netip.MustParseAddr("192.168.111.31"), netip.MustParseAddr("fd99:7::31")}, Elsewhere: []netip.Addr{netip.MustParseAddr("2001:db8:1::31")}}
	for want, network := range map[string]netip.Prefix{"2001:db8:1::31": netip.MustParsePrefix("2001:db8:1::/64"), "fd99:7::31": {}} {
		if a, ok := peer.AddressFor(Binding{Source: netip.MustParsePrefix("2001:db8:1::30/64"), Network: network}); !ok || a.String() != want {
			t.Errorf("in network %v: %v, want %s", network, a, want)
		}
	}
}

func TestAddressFor(t *testing.T) {
	p := Peer{Elsewhere: []netip.Addr{netip.MustParseAddr("203.0.113.99")}, Addresses: []netip.Addr{
		netip.MustParseAddr("198.51.100.11"), netip.MustParseAddr("192.0.2.11"), netip.MustParseAddr("192.0.2.12")}}
	for source, want := range map[string]string{
		"192.0.2.10/24": "192.0.2.11", "10.0.0.10/24": "198.51.100.11", "203.0.113.10/24": "203.0.113.99", "2001:db8::10/64": "invalid IP",
	} {
		prefix := netip.MustParsePrefix(source)
		got, _ := p.AddressFor(Binding{Source: prefix, Network: prefix.Masked()})
		testkit.Equal(testkit.In(t, source), want, got.String())
	}
}

func TestHosts(t *testing.T) {
	compute := map[string]string{"node-role.kubernetes.io/worker": ""}
	infra := map[string]string{"node-role.kubernetes.io/infra": ""}
	control := map[string]string{"node-role.kubernetes.io/control-plane": ""}
	tests := []struct {
		name        string
		group       GroupRole
		selector    map[string]string
		schedulable bool
		role        string
		labels      map[string]string
		want        bool
	}{
		{"API, master", GroupAPI, nil, false, "master", nil, true},
		{"API, arbiter", GroupAPI, nil, false, "arbiter", nil, true},
		{"API, bootstrap", GroupAPI, nil, false, "bootstrap", nil, true},
		{"API, worker", GroupAPI, nil, false, "worker", nil, false},
		{"API, custom pool", GroupAPI, nil, false, "infra", nil, false},
		{"DNS, master", GroupDNS, nil, false, "master", nil, true},
		{"DNS, worker", GroupDNS, nil, false, "worker", nil, false},
		{"ingress, worker", GroupIngress, compute, false, "worker", nil, true},
		{"ingress, custom pool, which is compute", GroupIngress, compute, false, "storage", nil, true},
		{"ingress, master", GroupIngress, compute, false, "master", nil, false},
		{"ingress, schedulable master", GroupIngress, compute, true, "master", nil, true},
		{"ingress, arbiter", GroupIngress, nil, true, "arbiter", nil, false},
		{"ingress, bootstrap", GroupIngress, nil, true, "bootstrap", nil, false},
		{"ingress on infra, infra pool", GroupIngress, infra, false, "infra", nil, true},
		{"ingress on infra, worker", GroupIngress, infra, false, "worker", nil, false},
		{"ingress on the control plane", GroupIngress, control, false, "master", nil, true},
		{"ingress anywhere", GroupIngress, nil, false, "master", nil, true},
		{"known labels count", GroupIngress, infra, false, "worker", infra, true},
		{"known labels count, none", GroupIngress, compute, false, "worker", map[string]string{}, false},
		{"the value counts", GroupIngress, map[string]string{"a": "b"}, false, "worker", map[string]string{"a": "c"}, false},
	}
	more := &Group{Name: "api-mgmt", Role: GroupAPI}
	for role, want := range map[string]bool{"master": true, "arbiter": true, "bootstrap": false, "worker": false} {
		testkit.Equal(testkit.In(t, role), want, (&ClusterConfigSpec{}).Hosts(more, role, nil))
	}
	for _, tt := range tests {
		s := &ClusterConfigSpec{ControlPlane: ControlPlane{Schedulable: tt.schedulable}}
		testkit.Equal(testkit.In(t, tt.name), tt.want, s.Hosts(&Group{Role: tt.group, NodeSelector: tt.selector}, tt.role, tt.labels))
	}
}

func networkList(s string) (out []netip.Prefix) {
	for f := range strings.FieldsSeq(s) {
		out = append(out, netip.MustParsePrefix(f))
	}
	return out
}

// Nodes are in the machine networks, unless a VIP is in none of them (hard case 44).
func TestNodeNetworks(t *testing.T) {
	nic := func(prefixes ...string) []Interface { return []Interface{iface("a", true, true, prefixes...)} }
	for _, tt := range []struct {
		name, machines, vips string
		external             bool
		interfaces           []Interface
		want, assumed        string
	}{
		{"VIPs inside", "192.0.2.0/24", "192.0.2.5 192.0.2.6", false, nic("192.0.2.10/24"), "192.0.2.0/24", "192.0.2.0/24"},
		{"a remote worker, VIPs inside", "192.0.2.0/24 198.51.100.0/24", "192.0.2.5", false, nic("198.51.100.10/25"),
			"192.0.2.0/24 198.51.100.0/24", "192.0.2.0/24 198.51.100.0/24"},
		{"VIPs outside: the prefix is the interface's", "10.0.0.0/16", "192.0.2.5 192.0.2.6", false, nic("192.0.3.10/23"), "192.0.2.0/23", "192.0.2.0/24"},
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
		{"no interface", "10.0.0.0/16", "192.0.2.5", false, nil, "", "192.0.2.0/24"},
		{"one family outside", "192.0.2.0/24 fd00:10::/48", "192.0.2.5 2001:db8::5", false, nic("192.0.2.10/24", "2001:db8::10/56"),
			"192.0.2.0/24 2001:db8::/56", "192.0.2.0/24 2001:db8::/64"},
		{"both outside", "10.0.0.0/16 fd00:10::/48", "192.0.2.5 2001:db8::5 192.0.2.6 2001:db8::6", false, nic("192.0.2.10/24", "2001:db8::10/64", "10.0.1.10/16"),
			"192.0.2.0/24 2001:db8::/64", "192.0.2.0/24 2001:db8::/64"},
		{"a machine network with a VIP counts", "10.0.0.0/16 198.51.100.0/24", "192.0.2.5 198.51.100.17", false, nic("192.0.2.10/24", "198.51.100.10/24"),
			"198.51.100.0/24 192.0.2.0/24", "198.51.100.0/24 192.0.2.0/24"},
		{"a family without machine networks", "192.0.2.0/24", "192.0.2.5 2001:db8::5", false, nic("192.0.2.10/24", "2001:db8::10/64"),
			"192.0.2.0/24 2001:db8::/64", "192.0.2.0/24 2001:db8::/64"},
		{"a load balancer elsewhere", "192.0.2.0/24", "203.0.113.5", true, nic("192.0.2.10/24"), "192.0.2.0/24", "192.0.2.0/24"},
		{"a load balancer elsewhere, and nodes", "10.0.0.0/16", "203.0.113.5", true, nic("192.0.2.10/24"), "10.0.0.0/16 192.0.2.0/24", "10.0.0.0/16"},
	} {
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

func TestPeersOf(t *testing.T) {
	b := BGP{LocalASN: 64512, Peers: []BGPPeer{
		{Address: netip.MustParseAddr("192.0.2.1"), Nodes: BGPNodes{Subnets: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/26")}}},
		{Address: netip.MustParseAddr("192.0.2.65"), Nodes: BGPNodes{Names: []string{"master-2"}}},
		{Address: netip.MustParseAddr("192.0.2.129"), LocalASN: 64513, Multihop: 2},
	}}
	for name, tt := range map[string]struct {
		address string
		want    []string
	}{
		"master-0":             {"192.0.2.10", []string{"192.0.2.1", "192.0.2.129"}},
		"master-2.example.com": {"198.51.100.10", []string{"192.0.2.65", "192.0.2.129"}},
		"master-20":            {"198.51.100.10", []string{"192.0.2.129"}},
	} {
		var got []string
		for _, p := range b.PeersOf(name, []netip.Addr{netip.MustParseAddr(tt.address)}) {
			got = append(got, p.Address.String())
		}
		testkit.Equal(testkit.In(t, name), tt.want, got)
	}
	shared := b.Peers
	b.Default()
	testkit.Equal(t, true, b.Peers[0].BFD.On())
	testkit.Equal(t, 50*time.Millisecond, time.Duration(b.Peers[0].BFD.Interval))
	testkit.Equal(t, false, b.Peers[2].BFD.On()) // over several hops
	testkit.Equal(t, nil, shared[0].BFD.Enabled) // of other clusters of a fleet
	testkit.Equal(t, uint32(64513), b.Local(&b.Peers[2]))
	testkit.Equal(t, uint32(64512), b.Local(&b.Peers[0]))
}

func TestCommunity(t *testing.T) {
	for text, want := range map[string]uint32{"64512:100": 64512<<16 | 100, "0:0": 0, "65535:65535": 1<<32 - 1} {
		got, ok := Community(text)
		testkit.Equal(testkit.In(t, text), true, ok)
		testkit.Equal(testkit.In(t, text), want, got)
	}
	for _, text := range []string{"", "64512", "64512:", ":1", "65536:1", "1:2:3", "-1:1", "no-export"} {
		if _, ok := Community(text); ok {
			t.Errorf("%q is one", text)
		}
	}
}
