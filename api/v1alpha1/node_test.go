package v1alpha1

import (
	"net/netip"
	"testing"

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
	tests := []struct {
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
	}
	for _, tt := range tests {
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
		if got := s.Hosts(&Group{Role: tt.group, NodeSelector: tt.selector}, tt.role, tt.labels); got != tt.want {
			t.Errorf("%s: %t, want %t", tt.name, got, tt.want)
		}
	}
}
