package membership

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// A node takes part only where its peers, by their configuration, send advertisements to it.
func TestReached(t *testing.T) {
	const own, own6, vip, vip6 = "192.0.2.11", "2001:db8::11", "192.0.2.5", "2001:db8::5"
	for _, tt := range []struct {
		name, role, listed, own, vip string
		multicast, want              bool
	}{
		{"where it is listed", "master", own, own, vip, false, true},
		{"elsewhere", "master", own, "192.0.2.99", vip, false, false},
		{"adverts reach everybody", "master", own, "192.0.2.99", vip, true, true},
		{"an odd address first", "master", "192.0.2.98 " + own, own, vip, false, false},
		{"an odd address of another network first", "master", "198.51.100.1 " + own, own, vip, false, true},
		{"an odd address last", "master", own + " 192.0.2.98", own, vip, false, true},
		{"an odd address alone", "master", "192.0.2.98", own, vip, false, false},
		{"a peer's address first", "master", "192.0.2.12 " + own, own, vip, false, false},
		{"the other one of its own first", "master", "192.0.2.13 " + own, own + " 192.0.2.13", vip, false, true},
		{"no address", "master", "", own, vip, false, false},
		{"a worker", "worker", own, own, vip, false, false},
		{"an arbiter", "arbiter", own, own, vip, false, true},
		{"the other family is elsewhere", "master", own + " " + own6, own + " 2001:db8::99", vip, false, true},
		{"the VIP's family is elsewhere", "master", own + " " + own6, own + " 2001:db8::99", vip6, false, false},
		{"listed in the other family alone", "master", own, own + " " + own6, vip6, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mode := v1alpha1.ModeUnicast
			if tt.multicast {
				mode = v1alpha1.ModeMulticast
			}
			vrrp := &v1alpha1.VRRPSettings{Profile: v1alpha1.ProfileFast, Mode: mode, Version: 3, AdvertIntervalMS: 50}
			cluster := &v1alpha1.ClusterConfig{Spec: v1alpha1.ClusterConfigSpec{
				LoadBalancer: v1alpha1.LoadBalancerInCluster, ControlPlane: v1alpha1.ControlPlane{Replicas: 3},
				Groups: []v1alpha1.Group{{Name: v1alpha1.FirstAPI, Role: v1alpha1.GroupAPI, Instance: "API", VirtualRouterID: 7, VIPs: addrs(tt.vip)}},
			}}
			self := v1alpha1.Peer{Name: "self", Role: tt.role, Addresses: addrs(tt.listed)}
			other := v1alpha1.Peer{Name: "other", Role: "master", Addresses: addrs("192.0.2.12 2001:db8::12")}
			third := v1alpha1.Peer{Name: "third", Role: "master", Addresses: addrs("192.0.2.14 2001:db8::14")}
			node := &v1alpha1.Node{Name: "self", Role: "master", VRRP: vrrp, Listed: self.Addresses, Interfaces: links(tt.own), Peers: []v1alpha1.Peer{other, third}}
			i := keepalived.New(cluster, node).Instances[0]
			testkit.Equal(t, tt.want, reached(&cluster.Spec, self, &i))
			sends := keepalived.New(cluster, &v1alpha1.Node{
				Name: "other", Role: "master", VRRP: vrrp, Interfaces: links("192.0.2.12 2001:db8::12"), Peers: []v1alpha1.Peer{self, third},
			}).Instances[0]
			testkit.Equal(testkit.In(t, sends.Peers, i.Source), tt.want, tt.multicast || slices.Contains(sends.Peers, i.Source))
		})
	}
}

func addrs(list string) (out []netip.Addr) {
	for _, a := range strings.Fields(list) {
		out = append(out, netip.MustParseAddr(a))
	}
	return out
}

// links returns one interface with the given addresses.
func links(list string) []v1alpha1.Interface {
	i := v1alpha1.Interface{Name: "eth0"}
	for _, a := range addrs(list) {
		i.Addresses = append(i.Addresses, netip.PrefixFrom(a, a.BitLen()-8))
	}
	return []v1alpha1.Interface{i}
}

func TestAddressMismatch(t *testing.T) {
	asked := map[linkState]string{unheld: "nobody", knownTo: "somebody who knows it", unknownTo: "somebody", undetermined: "who knows who"}
	type step struct {
		at      time.Duration
		reached bool
		link    linkState // -1 where it must not be queried
		claimed bool
		want    time.Duration
		admit   bool
	}
	const s, not = time.Second, linkState(-1)
	for name, steps := range map[string][]step{
		"for a moment": {
			{0, true, not, false, 0, false}, {1 * s, false, not, false, 62 * s, false}, {21 * s, false, not, false, 42 * s, false},
			{22 * s, true, not, false, 7 * s, false}, {28 * s, true, not, false, 1 * s, false}, {29 * s, true, unheld, false, 0, false}, {30 * s, true, not, false, 0, false},
		},
		"again before the others know it": {
			{0, false, not, false, 62 * s, false}, {5 * s, true, not, false, 7 * s, false}, {6 * s, false, not, false, 56 * s, false}, {7 * s, true, not, false, 7 * s, false},
		},
		"the holder does not know it yet": {
			{0, false, not, false, 62 * s, false}, {5 * s, true, not, false, 7 * s, false}, {12 * s, true, unknownTo, false, 1 * s, false}, {13 * s, true, knownTo, false, 0, false},
		},
		"while somebody holds the VIP": {
			{0, false, not, false, 62 * s, false}, {62 * s, false, unknownTo, false, 7 * s, false}, {68 * s, false, not, false, 1 * s, false},
			{69 * s, false, knownTo, false, 7 * s, false}, {76 * s, false, undetermined, false, 7 * s, false}, {90 * s, false, unheld, false, 0, false}, {91 * s, false, not, false, 0, false},
		},
		"until another takes the VIP": {
			{0, false, not, false, 62 * s, false}, {62 * s, false, unheld, false, 0, false}, {80 * s, false, not, true, 7 * s, false}, {86 * s, false, not, false, 1 * s, false},
			{87 * s, false, unheld, false, 0, false},
		},
		"as the only one, until the others know it": {
			{0, false, not, false, 62 * s, false}, {62 * s, false, unheld, false, 0, false}, {80 * s, true, not, false, 0, false}, {81 * s, false, not, false, 62 * s, false},
		},
		"may have it only now, and the holder does not know": {
			{0, true, unknownTo, false, 7 * s, true}, {6 * s, true, not, false, 1 * s, false}, {7 * s, true, unknownTo, false, 1 * s, false},
			{8 * s, true, knownTo, false, 0, false}, {9 * s, true, not, false, 0, false},
		},
		"may have it only now, and nobody else has it": {{0, true, unheld, false, 0, true}, {1 * s, true, not, false, 0, false}},
		"may have it only now, elsewhere":              {{0, false, not, false, 62 * s, true}},
	} {
		t.Run(name, func(t *testing.T) {
			d, began := addressMismatches{}, time.Now()
			for _, x := range steps {
				got := d.wait(began.Add(x.at), "API_0", conditions{reached: x.reached, admitted: x.admit, claimed: x.claimed, turn: 2 * s, link: func() linkState {
					if x.link == not {
						t.Errorf("after %v: the link is polled", x.at)
					}
					return x.link
				}})
				testkit.Equal(testkit.In(t, x.at, asked[x.link]), x.want, got)
			}
		})
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
		testkit.Equal(testkit.In(t, tt.name), tt.want, LostSource([]keepalived.Instance{tt.instance}, tt.have))
	}
}

func TestMoved(t *testing.T) {
	old, fresh, peer := netip.MustParseAddr("192.0.2.10"), netip.MustParseAddr("192.0.2.40"), []netip.Addr{netip.MustParseAddr("192.0.2.11")}
	at := func(a netip.Addr) []keepalived.Instance {
		return []keepalived.Instance{{Name: "API_0", Source: a, Peers: peer, At: v1alpha1.Binding{Network: netip.MustParsePrefix("192.0.2.0/24")}}}
	}
	listed := func(a netip.Addr) []keepalived.Instance {
		return []keepalived.Instance{{Name: "API_0", Source: a, Peers: peer}}
	}
	var s sources
	for _, step := range []struct {
		name      string
		instances []keepalived.Instance
		want      bool
	}{
		{"at first", at(old), false},
		{"the link is down", nil, false},
		{"the link is up", at(old), false},
		{"another address", at(fresh), true},
		{"it stays", at(fresh), false},
		{"the first one again", at(old), true},
		{"the listed one, of other VRRP settings (hard case 46)", listed(fresh), false},
		{"moved with the others", at(old), false},
		{"listed elsewhere", listed(old), true},
	} {
		testkit.Equal(testkit.In(t, step.name), step.want, s.moved(step.instances))
	}
}
