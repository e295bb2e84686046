package nodes

import (
	"encoding/json"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

// node is a Node as the API returns it, with unneeded fields.
func node(name, labels, annotations, addresses string) string {
	return `{"kind":"Node","apiVersion":"v1","metadata":{"name":"` + name + `","resourceVersion":"7","uid":"u",
		"labels":{` + labels + `},
		"annotations":{"volumes.kubernetes.io/controller-managed-attach-detach":"true"` + annotations + `},
		"managedFields":[{"manager":"kubelet","operation":"Update","fieldsV1":{"f:status":{}}}]},
		"spec":{"podCIDR":"10.128.0.0/24"},
		"status":{"addresses":[` + addresses + `],"images":[{"names":["quay.example.com/a"],"sizeBytes":1}],
		"nodeInfo":{"kubeletVersion":"v1.34.2","kernelVersion":"5.14"}}}`
}

func internal(addr string) string { return `{"type":"InternalIP","address":"` + addr + `"}` }

const masterLabels = `"node-role.kubernetes.io/control-plane":"","node-role.kubernetes.io/master":""`

func testSpec(port int) *v1alpha1.ClusterConfigSpec {
	return &v1alpha1.ClusterConfigSpec{
		Domain:          "demo.example.com",
		LoadBalancer:    v1alpha1.LoadBalancerInCluster,
		MachineNetworks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/64")},
		Groups: []v1alpha1.Group{{
			Name: "api", Role: v1alpha1.GroupAPI, VIPs: testkit.Addrs("192.0.2.5", "2001:db8::5"),
		}},
		Ports: v1alpha1.Ports{API: port},
	}
}

var compareAddrs = cmp.Options{cmpopts.EquateComparable(netip.Addr{}), cmpopts.IgnoreUnexported(record{})}

func TestPeer(t *testing.T) {
	for name, c := range map[string]struct {
		labels, annotations, addresses string
		role                           string
		want                           []netip.Addr
	}{
		"order of the status": {
			labels: masterLabels, addresses: internal("2001:db8::10") + "," + internal("192.0.2.10"),
			role: "master", want: testkit.Addrs("2001:db8::10", "192.0.2.10"),
		},
		"names and external addresses": {
			addresses: `{"type":"Hostname","address":"192.0.2.77"},{"type":"ExternalIP","address":"198.51.100.1"},` + internal("192.0.2.10"),
			role:      "worker", want: testkit.Addrs("192.0.2.10"),
		},
		"the family of the status is not taken from annotations": {
			annotations: `,"k8s.ovn.org/host-cidrs":"[\"192.0.2.99/24\"]"`, addresses: internal("192.0.2.10"),
			role: "worker", want: testkit.Addrs("192.0.2.10"),
		},
		"nothing": {role: "worker"},
		"arbiter": {labels: `"node-role.kubernetes.io/arbiter":""`, role: "arbiter"},
		"custom pool": {
			labels: `"node-role.kubernetes.io/worker":"","node-role.kubernetes.io/storage":"","node-role.kubernetes.io/infra":""`, role: "infra",
		},
		"control plane that is schedulable": {
			labels: `"node-role.kubernetes.io/worker":"","node-role.kubernetes.io/control-plane":""`, role: "master",
		},
	} {
		t.Run(name, func(t *testing.T) { checkPeer(t, c.labels, c.annotations, c.addresses, c.role, c.want) })
	}
}

func TestHardCase10EgressAddresses(t *testing.T) {
	for name, c := range map[string]struct {
		annotations, addresses string
		want                   []netip.Addr
	}{
		"in the status": {
			`,"k8s.ovn.org/bridge-egress-ips":"[\"192.0.2.50\"]"`, internal("192.0.2.50") + "," + internal("192.0.2.10"),
			testkit.Addrs("192.0.2.10"),
		},
		"in the annotations": {
			`,"k8s.ovn.org/secondary-host-egress-ips":"[\"2001:db8::50\"]","k8s.ovn.org/host-cidrs":"[\"2001:db8::50/64\",\"2001:db8::10/128\"]"`,
			internal("192.0.2.10"), testkit.Addrs("192.0.2.10", "2001:db8::10"),
		},
		"link-local, loopback, OVN's own": {
			`,"k8s.ovn.org/host-cidrs":"[\"fe80::1/64\",\"::1/128\",\"fd69::2/125\",\"2001:db8::10/64\"]"`,
			internal("192.0.2.10"), testkit.Addrs("192.0.2.10", "2001:db8::10"),
		},
	} {
		t.Run(name, func(t *testing.T) { checkPeer(t, "", c.annotations, c.addresses, "worker", c.want) })
	}
}

func TestHardCase12OneFamilyInTheStatus(t *testing.T) {
	for name, c := range map[string]struct {
		annotations string
		want        []netip.Addr
	}{
		"host-cidrs": {
			`,"k8s.ovn.org/host-cidrs":"[\"192.0.2.10/24\",\"2001:db8::10/64\"]"`, testkit.Addrs("192.0.2.10", "2001:db8::10"),
		},
		"host-addresses": {
			`,"k8s.ovn.org/host-addresses":"[\"192.0.2.10\",\"2001:db8::10\"]"`, testkit.Addrs("192.0.2.10", "2001:db8::10"),
		},
		"host-cidrs wins": {
			`,"k8s.ovn.org/host-cidrs":"[\"2001:db8::10/64\"]","k8s.ovn.org/host-addresses":"[\"2001:db8::11\"]"`,
			testkit.Addrs("192.0.2.10", "2001:db8::10"),
		},
		"VIPs": {
			`,"k8s.ovn.org/host-cidrs":"[\"2001:db8::5/128\",\"192.0.2.5/32\",\"2001:db8::10/64\"]"`,
			testkit.Addrs("192.0.2.10", "2001:db8::10"),
		},
		"machine networks first": {
			`,"k8s.ovn.org/host-cidrs":"[\"2001:db8:1::10/64\",\"2001:db8::10/64\"]"`, testkit.Addrs("192.0.2.10", "2001:db8::10"),
		},
		"another network": {
			`,"k8s.ovn.org/host-cidrs":"[\"2001:db8:1::10/64\"]"`, testkit.Addrs("192.0.2.10", "2001:db8:1::10"),
		},
		"garbage": {`,"k8s.ovn.org/host-cidrs":"[\"x\",7"`, testkit.Addrs("192.0.2.10")},
	} {
		t.Run(name, func(t *testing.T) { checkPeer(t, "", c.annotations, internal("192.0.2.10"), "worker", c.want) })
	}
	t.Run("VIP in the status", func(t *testing.T) {
		checkPeer(t, "", "", internal("192.0.2.5")+","+internal("192.0.2.10"), "worker", testkit.Addrs("192.0.2.10"))
	})
}

func checkPeer(t *testing.T, labels, annotations, addresses, role string, want []netip.Addr) {
	t.Helper()
	var n nodeObject
	testkit.Must(t, json.Unmarshal([]byte(node("n", labels, annotations, addresses)), &n))
	p := newRecord(&n).peer(testSpec(6443))
	if p.Role != role {
		t.Errorf("role %q, want %q", p.Role, role)
	}
	testkit.Equal(t, want, p.Addresses, compareAddrs)
}

// For a network with VIPs that the status does not list, the annotations count: advertisements
// are sent there.
func TestAddressesElsewhere(t *testing.T) {
	spec := testSpec(6443)
	spec.MachineNetworks = append(spec.MachineNetworks, netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"))
	var n nodeObject
	text := node("n", "", `,"k8s.ovn.org/host-cidrs":"[\"192.0.2.99/24\",\"198.51.100.10/24\",\"198.51.100.17/32\",\"203.0.113.10/24\"]"`, internal("192.0.2.10"))
	testkit.Must(t, json.Unmarshal([]byte(text), &n))
	before := newRecord(&n).peer(spec)
	spec.Groups = append(spec.Groups, v1alpha1.Group{Name: "api-mgmt", Role: v1alpha1.GroupAPI, VIPs: testkit.Addrs("198.51.100.17")})
	after := newRecord(&n).peer(spec)
	if len(before.Elsewhere) > 0 || !slices.Equal(after.Elsewhere, testkit.Addrs("198.51.100.10")) || !slices.Equal(after.Addresses, testkit.Addrs("192.0.2.10")) {
		t.Errorf("%+v without the VIP, %+v with it", before, after)
	}
	if samePeer(before, after) {
		t.Error("a change without a notification")
	}
}

// With VIPs outside of the machine networks (hard case 44), the prefix lengths of the
// annotations tell which of a node's addresses are in the VIPs' network.
func TestHardCase44AnnotationsHaveTheNetwork(t *testing.T) {
	spec := testSpec(6443)
	spec.MachineNetworks = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}
	spec.Groups = []v1alpha1.Group{{Name: "api", Role: v1alpha1.GroupAPI, VIPs: testkit.Addrs("192.0.2.5", "2001:db8::5")}}
	for name, tt := range map[string]struct {
		host, status         string
		addresses, elsewhere []netip.Addr
	}{
		"the other family":                       {`[\"192.0.3.10/23\",\"2001:db8:0:7::10/56\",\"fd00::10/64\"]`, "192.0.3.10", testkit.Addrs("192.0.3.10", "2001:db8:0:7::10"), nil},
		"the VIP's network first (hard case 46)": {`[\"192.0.3.10/23\",\"2001:db8:0:7::10/56\",\"2001:db7::10/64\"]`, "192.0.3.10", testkit.Addrs("192.0.3.10", "2001:db8:0:7::10"), nil},
		"another network in the status":          {`[\"10.0.1.10/16\",\"192.0.3.10/23\",\"2001:db8::10/64\"]`, "10.0.1.10", testkit.Addrs("10.0.1.10", "2001:db8::10"), testkit.Addrs("192.0.3.10")},
		"no prefix lengths":                      {`[\"192.0.2.10\",\"2001:db8::10\"]`, "192.0.2.10", testkit.Addrs("192.0.2.10", "2001:db8::10"), nil},
		"not in the VIP's network":               {`[\"192.0.3.10/24\",\"198.51.100.1/24\"]`, "192.0.3.10", testkit.Addrs("192.0.3.10"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var n nodeObject
			testkit.Must(t, json.Unmarshal([]byte(node("n", "", `,"k8s.ovn.org/host-cidrs":"`+tt.host+`"`, internal(tt.status))), &n))
			r := newRecord(&n)
			p := r.peer(spec)
			if !slices.Equal(p.Addresses, tt.addresses) || !slices.Equal(p.Elsewhere, tt.elsewhere) {
				t.Errorf("got %v, elsewhere %v; want %v, %v", p.Addresses, p.Elsewhere, tt.addresses, tt.elsewhere)
			}
			data, err := state{Cluster: "demo", Nodes: []*record{r}}.encode(maxStateBytes)
			testkit.Must(t, err)
			back, err := decodeState(data, "demo")
			if err != nil || !back.Nodes[0].equal(r) {
				t.Errorf("from the disk: %+v, %v", back, err)
			}
		})
	}
}

func TestRecordKeepsUpdate(t *testing.T) {
	var n nodeObject
	text := node("n", `"a":"b"`, `,"machineconfiguration.openshift.io/currentConfig":"rendered-1",
		"machineconfiguration.openshift.io/desiredConfig":"rendered-2","machineconfiguration.openshift.io/state":"Working"`, "")
	testkit.Must(t, json.Unmarshal([]byte(text), &n))
	want := &record{Name: "n", Labels: labels{{"a", "b"}}, Update: Update{
		CurrentConfig: "rendered-1", DesiredConfig: "rendered-2", State: "Working", KubeletVersion: "v1.34.2",
	}}
	testkit.Equal(t, want, newRecord(&n), compareAddrs)
}
