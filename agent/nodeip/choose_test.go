package nodeip

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

// choice is a case of a table: a network, a cluster, what is chosen.
type choice struct {
	name, vips, machines, want, network string
}

func (tt choice) run(t *testing.T) {
	t.Run(tt.name, func(t *testing.T) {
		c := Choose(network(t, tt.network), cluster(tt.vips, tt.machines), Preference{})
		if got := picked(c); got != tt.want {
			t.Errorf("chose %s, want %s", got, tt.want)
			for _, a := range c.Addresses {
				t.Logf("%s: %s", a.Family, a.Why)
			}
			for _, r := range c.Rejected {
				t.Logf("%s %s: %s", r.Interface, r.Address, r.Why)
			}
		}
	})
}

// A link whose name no configuration can contain does not exist for daemons.
func TestHardCase37LinkName(t *testing.T) {
	c := Choose(network(t, `
		link wg+0
		addr 198.51.100.20/24
		route default via 198.51.100.1 metric 10
		link eth0
		addr 192.0.2.10/24
		route default via 192.0.2.1 metric 100`), cluster("192.0.2.2", "192.0.2.0/24"), Preference{})
	if len(c.Interfaces) != 1 || c.Interfaces[0].Name != "eth0" || !c.Interfaces[0].DefaultRoute4 {
		t.Errorf("daemons are configured with %+v", c.Interfaces)
	}
	if len(c.Unconfigured) != 1 || c.Unconfigured[0].Interface != "wg+0" || !strings.Contains(c.Unconfigured[0].Why, "characters") {
		t.Errorf("left out: %+v", c.Unconfigured)
	}
}

// kubelet gets its address whatever the interface is called, and while it is down.
func TestHardCase48(t *testing.T) {
	for _, name := range []string{"br-external", "br-ext", "tun0", "cni-ext", "eth0+1", "docker1", "eth0 down", "eth0+1 down"} {
		link := "link " + name + "\naddr 192.0.2.10/24\n"
		want := "192.0.2.10/24 " + strings.Fields(name)[0]
		choice{"VIP's network: " + name, "192.0.2.2", "192.0.2.0/24", want, link}.run(t)
		choice{"default route: " + name, "203.0.113.2", "203.0.113.0/24", want, link + "route default via 192.0.2.1"}.run(t)
	}
	choice{"one that is up comes first", "192.0.2.5", "192.0.2.0/24", "192.0.2.11/24 eth1", "link eth0 down\naddr 192.0.2.10/25\nlink eth1\naddr 192.0.2.11/24"}.run(t)
	choice{"one that is down, before a default route", "192.0.2.5", "192.0.2.0/24", "192.0.2.10/24 eth0", "link eth0 down\naddr 192.0.2.10/24\nlink eth1\naddr 198.51.100.10/24\nroute default via 198.51.100.1"}.run(t)
	c := Choose(network(t, "link eth0 down\naddr 192.0.2.10/24"), cluster("192.0.2.5", "192.0.2.0/24"), Preference{})
	if len(c.Interfaces) > 0 || len(c.LeftOut()) != 1 || c.LeftOut()[0].Why != "an interface that is down" {
		t.Errorf("daemons are configured with %+v while it is down; left out: %+v", c.Interfaces, c.LeftOut())
	}
}

func TestHardCase10(t *testing.T) {
	const v4 = "192.0.2.0/24"
	const v6 = "2001:db8::/64"
	for _, tt := range []choice{
		{"/128 in an advertised network", "2001:db8::2", v6, "2001:db8::10/64 eth0", "link eth0; addr 2001:db8::10/128; route 2001:db8::/64 ra"},
		{"/128, narrowest of several advertised networks", "2001:db8::2", v6, "2001:db8::10/64 eth0",
			"link eth0; addr 2001:db8::10/128; route 2001:db8::/48 ra; route 2001:db8::/64 ra; route 2001:db8::/56 ra"},
		{"/128, the network is advertised on another link", "2001:db8::2", v6, "2001:db8::10/128 eth0",
			"link eth0; addr 2001:db8::10/128; route default6 via fe80::1 ra; link eth1; route 2001:db8::/64 ra"},
		{"/128, the advertised route goes through a router", "2001:db8::2", v6, "2001:db8::10/128 eth0",
			"link eth0; addr 2001:db8::10/128; route 2001:db8::/64 via fe80::1 ra; route default6 via fe80::1 ra"},
		{"/128, the route is an administrator's", "2001:db8::2", v6, "2001:db8::20/64 eth1",
			"link eth0; addr 2001:db8::10/128; route 2001:db8::/64; link eth1; addr 2001:db8::20/128; route 2001:db8::/64 ra"},
		{"/32 stays alone", "192.0.2.2", v4, "192.0.2.20/24 eth1", "link eth0; addr 192.0.2.10/32; route 192.0.2.0/24 ra; link eth1; addr 192.0.2.20/24"},
		{"tentative: waits, although there is another", "2001:db8::2", v6, "no IPv6",
			"link eth0; addr 2001:db8::10/64 tentative; link eth1; addr 2001:db8:1::10/64; route default6 via fe80::1"},
		{"tentative on the default route: waits too", "2001:db8::2", v6, "no IPv6",
			"link eth0; addr 2001:db8:1::10/64 tentative; route default6 via fe80::1 metric 100; link eth1; " +
				"addr 2001:db8:2::10/64; route default6 via fe80::1 metric 200"},
		{"tentative beside one that is not, on the default route", "2001:db8::2", v6, "2001:db8:1::11/64 eth0",
			"link eth0; addr 2001:db8:1::10/64 tentative; addr 2001:db8:1::11/64; route default6 via fe80::1"},
		{"tentative beside one that is not", "2001:db8::2", v6, "2001:db8::10/64 eth0", "link eth0; addr 2001:db8::11/64 tentative; addr 2001:db8::10/64"},
		{"deprecated, duplicate, temporary", "2001:db8::2", v6, "2001:db8::13/64 eth0",
			"link eth0; addr 2001:db8::10/64 deprecated; addr 2001:db8::11/64 tentative dadfailed; addr 2001:db8::12/64 temporary; addr 2001:db8::13/64"},
		{"a duplicate is not waited for", "2001:db8::2", v6, "2001:db8:1::10/64 eth1",
			"link eth0; addr 2001:db8::11/64 tentative dadfailed; link eth1; addr 2001:db8:1::10/64; route default6 via fe80::1"},
		{"link-local and loopback", "192.0.2.2", v4 + " " + v6, "no IPv4, no IPv6",
			"link lo loopback; addr 127.0.0.1/8; addr ::1/128; addr 192.0.2.99/32; link eth0; addr fe80::10/64; addr 169.254.1.1/16"},
		{"OVN's fd69::2 on br-ex", "fd00::2", "fd00::/64", "fd00::10/64 br-ex",
			"link br-ex; addr fd69::2/112; addr fd00::10/64; route default6 via fe80::1 src fd69::2"},
		{"egress IPs of both networks", "192.0.2.5", v4, "192.0.2.10/24 eth0",
			"link eth0; addr 192.0.2.11/24 label=eth0ovn; addr 192.0.2.12/24 label=eth0:eip; addr 192.0.2.10/24 label=eth0"},
		{"an interface whose name ends in ovn", "192.0.2.5", v4, "192.0.2.11/24 eth0ovn", "link eth0ovn; addr 192.0.2.11/24 label=eth0ovn"},
		{"VIPs held by this node", "192.0.2.5 192.0.2.6", v4, "192.0.2.10/24 eth0",
			"link eth0; addr 192.0.2.5/24; addr 192.0.2.6/32 label=eth0; addr 192.0.2.7/24 label=vip; " +
				"addr 192.0.2.8/24 label=eth0:vip; addr 192.0.2.10/24"},
	} {
		tt.run(t)
	}
}

func TestHardCase11(t *testing.T) {
	const v4 = "192.0.2.0/24"
	for _, tt := range []choice{
		{"narrowest of overlapping networks", "10.1.2.5", "10.0.0.0/8", "10.1.2.10/24 eth2",
			"link eth0; addr 10.0.0.10/8; route default via 10.0.0.1; link eth1; addr 10.1.0.10/16; link eth2; addr 10.1.2.10/24"},
		{"same network twice: the one with the default route", "192.0.2.5", v4, "192.0.2.11/24 eth1",
			"link eth0; addr 192.0.2.10/24; link eth1; addr 192.0.2.11/24; route default via 192.0.2.1 metric 500"},
		{"same network twice: by name", "192.0.2.5", v4, "192.0.2.10/24 eth0", "link eth1; addr 192.0.2.11/24; link eth0; addr 192.0.2.10/24"},
		{"the first VIP decides", "192.0.2.5 198.51.100.5", v4, "192.0.2.10/24 eth1", "link eth0; addr 198.51.100.10/24; link eth1; addr 192.0.2.10/24"},
		{"a later VIP decides", "192.0.2.5 198.51.100.5", v4, "198.51.100.10/24 eth0",
			"link eth0; addr 198.51.100.10/24; link eth1; addr 203.0.113.10/24; route default via 203.0.113.1"},
		{"no VIP's network: default route of the lowest metric", "192.0.2.5", v4, "203.0.113.10/24 eth1",
			"link eth0; addr 198.51.100.10/24; route default via 198.51.100.1 metric 200; link eth1; " +
				"addr 203.0.113.10/24; route default via 203.0.113.1 metric 100"},
		{"equal metrics: the older link", "192.0.2.5", v4, "198.51.100.10/24 eth1",
			"link eth1; addr 198.51.100.10/24; route default via 198.51.100.1; link eth0; addr 203.0.113.10/24; route default via 203.0.113.1"},
		{"default route over a link without an address", "192.0.2.5", v4, "203.0.113.10/24 eth1",
			"link eth0; route default metric 1; link eth1; addr 203.0.113.10/24; route default via 203.0.113.1 metric 100"},
		{"a public address before a private one", "192.0.2.5", v4, "203.0.113.10/24 eth0",
			"link eth0; addr 10.0.0.10/24; addr 203.0.113.10/24; route default via 198.51.100.1"},
		{"the router's network before a public address", "192.0.2.5", v4, "10.0.0.10/24 eth0",
			"link eth0; addr 203.0.113.10/24; addr 10.0.0.10/24; route default via 10.0.0.1"},
		{"the lower one of several alike", "192.0.2.5", v4, "198.51.100.10/24 eth0",
			"link eth0; addr 198.51.100.11/24; addr 198.51.100.10/24; route default via 198.51.100.1"},
		{"the family's default route before the other's", "192.0.2.5", v4, "203.0.113.10/24 eth1",
			"link eth0; addr 198.51.100.10/24; route default6 via fe80::1; link eth1; addr 203.0.113.10/24; route default via 203.0.113.1"},
		{"no address on the family's default route: on the other's", "192.0.2.5", v4, "198.51.100.10/24 eth0",
			"link eth0; addr 198.51.100.10/24; route default6 via fe80::1"},
		{"the second family without VIPs: on the interface of the first", "192.0.2.5", v4 + " 2001:db8::/64", "192.0.2.10/24 eth0, 2001:db8:1::10/64 eth0",
			"link eth0; addr 192.0.2.10/24; addr 2001:db8:1::10/64; link eth1; addr 2001:db8:2::10/64; route default6 via fe80::1"},
		{"the router's network among several", "192.0.2.5", v4, "203.0.113.10/24 eth0",
			"link eth0; addr 198.51.100.10/24; addr 203.0.113.10/24; route default via 203.0.113.1"},
		{"family by family", "192.0.2.5 2001:db8::5", "192.0.2.0/24 2001:db8::/64", "198.51.100.10/24 eth0, 2001:db8:1::10/64 eth1",
			"link eth0; addr 198.51.100.10/24; route default via 198.51.100.1; link eth1; addr 2001:db8:1::10/64; route default6 via fe80::1"},
		{"one family by VIP, the other by default route", "192.0.2.5 2001:db8::5", "192.0.2.0/24 2001:db8::/64", "192.0.2.10/24 eth0, 2001:db8:1::10/64 eth1",
			"link eth0; addr 192.0.2.10/24; link eth1; addr 198.51.100.10/24; addr 2001:db8:1::10/64; route default6 via fe80::1"},
		{"IPv6 first", "2001:db8::5 192.0.2.5", "2001:db8::/64 192.0.2.0/24", "2001:db8::10/64 eth0, 192.0.2.10/24 eth0",
			"link eth0; addr 192.0.2.10/24; addr 2001:db8::10/64"},
		{"IPv6 alone", "2001:db8::5", "2001:db8::/64", "2001:db8::10/64 eth0", "link eth0; addr 192.0.2.10/24; addr 2001:db8::10/64"},
		{"two machine networks of one family are one family", "192.0.2.5", "192.0.2.0/24 198.51.100.0/24", "192.0.2.10/24 eth0",
			"link eth0; addr 192.0.2.10/24"},
		{"no VIPs and no machine networks", "", "", "192.0.2.10/24 eth0", "link eth0; addr 192.0.2.10/24; route default via 192.0.2.1"},
		{"families of the VIPs, without machine networks", "2001:db8::5 192.0.2.5", "", "2001:db8::10/64 eth0, 192.0.2.10/24 eth0",
			"link eth0; addr 192.0.2.10/24; addr 2001:db8::10/64"},
		{"no default route: the machine network", "192.0.2.5", "192.0.2.0/24 203.0.113.0/24", "203.0.113.10/25 eth1",
			"link eth0; addr 198.51.100.10/24; link eth1; addr 203.0.113.10/25"},
		{"nothing fits", "192.0.2.5", v4, "no IPv4", "link eth0; addr 198.51.100.10/24"},
		{"nothing at all", "192.0.2.5", v4, "no IPv4", ""},
	} {
		tt.run(t)
	}
}

func TestHardCase09(t *testing.T) {
	const local = "link eth0\naddr 192.0.2.10/24\nroute default via 192.0.2.1"
	const remote = "link eth0\naddr 198.51.100.10/24\nroute default via 198.51.100.1"
	const both = "192.0.2.0/24 198.51.100.0/24"
	for _, tt := range []struct {
		name, platform, network, vips, machines, hint string
		lb                                            v1alpha1.LoadBalancerType
		want                                          bool
	}{
		{"in the VIPs' network", "baremetal", local, "192.0.2.5", both, "", v1alpha1.LoadBalancerInCluster, false},
		{"in another machine network", "baremetal", remote, "192.0.2.5 192.0.2.6", both, "", v1alpha1.LoadBalancerInCluster, true},
		{"in no machine network", "baremetal", "link eth0\naddr 203.0.113.10/24\nroute default", "192.0.2.5", both, "", v1alpha1.LoadBalancerInCluster, true},
		{"one machine network, and not in it", "baremetal", remote, "192.0.2.5", "192.0.2.0/24", "", v1alpha1.LoadBalancerInCluster, true},
		{"in the network of one VIP", "baremetal", remote, "192.0.2.5 198.51.100.5", both, "", v1alpha1.LoadBalancerInCluster, false},
		{"in the network of a hint", "baremetal", remote, "192.0.2.5", both, "198.51.100.1", v1alpha1.LoadBalancerInCluster, false},
		{"an interface that is down", "baremetal", remote + "\nlink eth1 down\naddr 192.0.2.10/24", "192.0.2.5", both, "", v1alpha1.LoadBalancerInCluster, false},
		{"in the VIP's machine network, another subnet", "baremetal", "link eth0\naddr 10.0.1.10/24\nroute default", "10.0.2.5", "10.0.0.0/16", "", v1alpha1.LoadBalancerInCluster, true},
		{"vSphere, several networks", "vsphere", remote, "192.0.2.5", both, "", v1alpha1.LoadBalancerInCluster, false},
		{"Nutanix, several networks", "nutanix", remote, "192.0.2.5", both, "", v1alpha1.LoadBalancerInCluster, false},
		{"VIPs on none", "none", remote, "192.0.2.5", both, "", v1alpha1.LoadBalancerInCluster, false},
		{"external load balancer", "baremetal", remote, "192.0.2.5", both, "", v1alpha1.LoadBalancerExternal, false},
		{"dual-stack, remote in both", "baremetal", remote + "\naddr 2001:db8:1::10/64\nroute default6 via fe80::1", "192.0.2.5 2001:db8::5", both + " 2001:db8::/64", "", v1alpha1.LoadBalancerInCluster, true},
		{"dual-stack, remote in one", "baremetal", remote + "\naddr 2001:db8::10/64", "192.0.2.5 2001:db8::5", both + " 2001:db8::/64", "", v1alpha1.LoadBalancerInCluster, false},
		{"no VIPs", "baremetal", remote, "", both, "", v1alpha1.LoadBalancerInCluster, false},
		{"no address yet", "baremetal", "link eth0", "192.0.2.5", both, "", v1alpha1.LoadBalancerInCluster, false},
	} {
		spec := cluster(tt.vips, tt.machines)
		spec.LoadBalancer, spec.Platform = tt.lb, tt.platform
		testkit.Equal(testkit.In(t, tt.name), tt.want, Choose(network(t, tt.network), spec, Preference{Hints: addresses(tt.hint)}).RemoteWorker)
	}
}

// VIPs for clients of another network do not change a node's address.
func TestMoreAPIVIPsChooseNoAddress(t *testing.T) {
	n := network(t, "link eth0; addr 198.51.100.10/24; route default via 198.51.100.1; link eth1; addr 203.0.113.10/24")
	spec := cluster("192.0.2.5", "198.51.100.0/24 203.0.113.0/24")
	before := picked(Choose(n, spec, Preference{}))
	spec.Groups = append(spec.Groups, v1alpha1.Group{Name: "api-mgmt", Role: v1alpha1.GroupAPI, VIPs: []netip.Addr{netip.MustParseAddr("203.0.113.5")}})
	if got := picked(Choose(n, spec, Preference{})); got != before || got != "198.51.100.10/24 eth0" {
		t.Errorf("chose %s, %s without them", got, before)
	}
	if !slices.Contains(VIPs(spec), netip.MustParseAddr("203.0.113.5")) {
		t.Error("the VIP counts as an address of a node")
	}
}

func TestInterfacesForTheNode(t *testing.T) {
	s := network(t, `
		link lo loopback
		addr 127.0.0.1/8
		link ens3
		addr 198.51.100.10/24
		addr 2001:db8:1::10/64 tentative
		link br-ex
		addr fe80::1/64
		addr 2001:db8::10/128
		addr 192.0.2.6/32
		addr 192.0.2.10/24
		route default via 192.0.2.1
		route default6 via fe80::9 ra
		route 2001:db8::/64 ra
		link ens4
		addr 2001:db8:4::1/64 tentative`)
	spec := cluster("192.0.2.5 192.0.2.6 2001:db8::5", "192.0.2.0/24 2001:db8::/64")
	c := Choose(s, spec, Preference{})
	want := []v1alpha1.Interface{
		{Name: "br-ex", DefaultRoute4: true, DefaultRoute6: true, Addresses: []netip.Prefix{
			netip.MustParsePrefix("192.0.2.10/24"), netip.MustParsePrefix("2001:db8::10/64"),
		}},
		{Name: "ens3", Addresses: []netip.Prefix{netip.MustParsePrefix("198.51.100.10/24")}},
	}
	compare := cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })
	testkit.Equal(t, want, c.Interfaces, compare)
	node := v1alpha1.Node{Name: "a", Role: "master", Interfaces: c.Interfaces}
	testkit.Empty(t, node.Validate())
	for i, vip := range []string{"192.0.2.5", "2001:db8::5"} {
		b, ok := node.Bind(netip.MustParseAddr(vip))
		if !ok || b.Source != c.Addresses[i].Address || b.Interface != c.Addresses[i].Interface {
			t.Errorf("%s goes to %v, but the node is known by %v", vip, b, c.Addresses[i])
		}
	}
	testkit.Equal(testkit.In(t, "own addresses"), 3, len(c.Own()))
}

// The first address of an interface is the one that its default route uses.
func TestFirstAddress(t *testing.T) {
	const here = "link eth0; addr 198.51.100.10/24; addr 192.0.2.11/24; addr 192.0.2.10/24; "
	for links, want := range map[string]string{
		here: "198.51.100.10/24",
		here + "link eth1; addr 203.0.113.10/24; route default via 192.0.2.1 src 192.0.2.10": "198.51.100.10/24",
		here + "route default via 192.0.2.1":                                                 "192.0.2.11/24",
		here + "route default via 192.0.2.1 src 192.0.2.10":                                  "192.0.2.10/24",
		"link eth0; addr 192.0.2.9/32; addr 192.0.2.10/24; addr 2001:db8::10/64":             "192.0.2.10/24",
	} {
		c := Choose(network(t, links), cluster("192.0.2.5", "192.0.2.0/24"), Preference{})
		testkit.Equal(testkit.In(t, links), want, c.Interfaces[len(c.Interfaces)-1].Addresses[0].String())
	}
}

func TestPrimaryFamilyIsNeeded(t *testing.T) {
	spec := cluster("", "192.0.2.0/24 2001:db8::/64")
	for _, tt := range []struct {
		name, network string
		want          int
	}{
		{"both", "link e\naddr 192.0.2.1/24\naddr 2001:db8::1/64", 2},
		{"primary alone", "link e\naddr 192.0.2.1/24", 1},
		{"secondary alone", "link e\naddr 2001:db8::1/64", 0},
		{"none", "link e", 0},
	} {
		testkit.Equal(testkit.In(t, tt.name), tt.want, len(Choose(network(t, tt.network), spec, Preference{}).IPs()))
	}
}

// With VIPs outside of the machine networks, these are ignored (hard case 44).
func TestHardCase44(t *testing.T) {
	const wizard = "10.0.0.0/16"
	for _, tt := range []choice{
		{"the VIP's network, not the machine network", "192.0.2.5 192.0.2.6", wizard, "192.0.3.10/23 eth1",
			"link eth0; addr 10.0.1.10/16; route default via 10.0.0.1; link eth1; addr 192.0.3.10/23"},
		{"both families, of which the machine networks have one", "192.0.2.5 2001:db8::5", wizard, "192.0.2.10/24 eth0, 2001:db8::10/64 eth0",
			"link eth0; addr 192.0.2.10/24; addr 2001:db8::10/64; route default via 192.0.2.1"},
		{"no subnet of the VIP: the default route", "192.0.2.5", wizard, "198.51.100.10/24 eth1",
			"link eth0; addr 10.0.1.10/16; link eth1; addr 198.51.100.10/24; route default via 198.51.100.1"},
		{"neither: waits, although there is one in the machine network", "192.0.2.5", wizard, "no IPv4", "link eth0; addr 10.0.1.10/16"},
	} {
		tt.run(t)
	}
}
