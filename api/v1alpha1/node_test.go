package v1alpha1

import (
	"net/netip"
	"testing"
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
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestAddressFor(t *testing.T) {
	tests := []struct {
		name, source string
		addresses    []string
		want         string
	}{
		{"in the network", "192.0.2.10/24", []string{"198.51.100.11", "192.0.2.11", "192.0.2.12"}, "192.0.2.11"},
		{"the first of the family", "192.0.2.10/24", []string{"2001:db8::11", "198.51.100.11", "203.0.113.11"}, "198.51.100.11"},
		{"IPv6", "2001:db8::10/64", []string{"192.0.2.11", "2001:db8::11"}, "2001:db8::11"},
		{"none", "192.0.2.10/24", []string{"2001:db8::11"}, ""},
		{"nothing known", "192.0.2.10/24", nil, ""},
		{"in another network", "203.0.113.10/24", []string{"192.0.2.11"}, "203.0.113.99"},
		{"not in another network", "192.0.2.10/24", []string{"198.51.100.11"}, "198.51.100.11"},
	}
	for _, tt := range tests {
		p := Peer{Elsewhere: []netip.Addr{netip.MustParseAddr("203.0.113.99")}}
		for _, a := range tt.addresses {
			p.Addresses = append(p.Addresses, netip.MustParseAddr(a))
		}
		got := ""
		if a, ok := p.AddressFor(Binding{Source: netip.MustParsePrefix(tt.source)}); ok {
			got = a.String()
		}
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
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
		if got := (&ClusterConfigSpec{}).Hosts(more, role, nil); got != want {
			t.Errorf("more API VIPs, %s: %t, want %t", role, got, want)
		}
	}
	for _, tt := range tests {
		s := &ClusterConfigSpec{ControlPlane: ControlPlane{Schedulable: tt.schedulable}}
		if got := s.Hosts(&Group{Role: tt.group, NodeSelector: tt.selector}, tt.role, tt.labels); got != tt.want {
			t.Errorf("%s: %t, want %t", tt.name, got, tt.want)
		}
	}
}
