package nodes

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vipgen/vipgen/agent/nodelist"
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
		Domain: "demo.example.com", LoadBalancer: v1alpha1.LoadBalancerInCluster,
		MachineNetworks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/64")},
		Groups:          []v1alpha1.Group{{Name: "api", Role: v1alpha1.GroupAPI, VIPs: testkit.Addrs("192.0.2.5", "2001:db8::5")}},
		Ports:           v1alpha1.Ports{API: port},
	}
}

var compareAddrs = cmp.Options{cmpopts.EquateComparable(netip.Addr{}), cmpopts.IgnoreUnexported(record{})}

// status is a Node with a role or label, annotations as key=value, and InternalIPs.
func status(t *testing.T, labels, annotations, addresses string) *record {
	t.Helper()
	var texts []string
	for _, a := range strings.Fields(addresses) {
		texts = append(texts, internal(a))
	}
	more := ""
	for _, a := range strings.Fields(annotations) {
		key, list, _ := strings.Cut(a, "=")
		value, err := json.Marshal(`["` + strings.ReplaceAll(list, ",", `","`) + `"]`)
		testkit.Must(t, err)
		more += fmt.Sprintf(`,"k8s.ovn.org/%s":%s`, key, value)
	}
	roles := ""
	for i, role := range strings.Fields(labels) {
		roles += fmt.Sprintf(`%s"node-role.kubernetes.io/%s":""`, []string{"", ","}[min(i, 1)], role)
	}
	var n nodeObject
	testkit.Must(t, json.Unmarshal([]byte(node("n", roles, more, strings.Join(texts, ","))), &n))
	return newRecord(&n)
}

func TestRole(t *testing.T) {
	for labels, want := range map[string]string{
		"": "worker", "arbiter": "arbiter", "worker storage infra": "infra", "worker control-plane": "master", "control-plane master": "master",
	} {
		testkit.Equal(testkit.In(t, labels), want, status(t, labels, "", "").peer(testSpec(6443)).Role)
	}
}

// addressCases maps annotations and addresses of the status to those of the peer.
type addressCases map[string]struct{ annotations, addresses, want string }

func (all addressCases) run(t *testing.T) {
	for name, c := range all {
		got := status(t, "", c.annotations, c.addresses).peer(testSpec(6443)).Addresses
		testkit.Equal(testkit.In(t, name), testkit.Addrs(strings.Fields(c.want)...), got)
	}
}

func TestHardCase10EgressAddresses(t *testing.T) {
	addressCases{
		"in the status":                   {"bridge-egress-ips=192.0.2.50", "192.0.2.50 192.0.2.10", "192.0.2.10"},
		"in the annotations":              {"secondary-host-egress-ips=2001:db8::50 host-cidrs=2001:db8::50/64,2001:db8::10/128", "192.0.2.10", "192.0.2.10 2001:db8::10"},
		"link-local, loopback, OVN's own": {"host-cidrs=fe80::1/64,::1/128,fd69::2/125,2001:db8::10/64", "192.0.2.10", "192.0.2.10 2001:db8::10"},
	}.run(t)
}

func TestHardCase12OneFamilyInTheStatus(t *testing.T) {
	addressCases{
		"nothing":                {"", "", ""},
		"order of the status":    {"", "2001:db8::10 192.0.2.10", "2001:db8::10 192.0.2.10"},
		"the status has it":      {"host-cidrs=192.0.2.99/24", "192.0.2.10", "192.0.2.10"},
		"host-cidrs":             {"host-cidrs=192.0.2.10/24,2001:db8::10/64", "192.0.2.10", "192.0.2.10 2001:db8::10"},
		"host-addresses":         {"host-addresses=192.0.2.10,2001:db8::10", "192.0.2.10", "192.0.2.10 2001:db8::10"},
		"host-cidrs wins":        {"host-cidrs=2001:db8::10/64 host-addresses=2001:db8::11", "192.0.2.10", "192.0.2.10 2001:db8::10"},
		"VIPs":                   {"host-cidrs=2001:db8::5/128,192.0.2.5/32,2001:db8::10/64", "192.0.2.10", "192.0.2.10 2001:db8::10"},
		"a VIP in the status":    {"", "192.0.2.5 192.0.2.10", "192.0.2.10"},
		"machine networks first": {"host-cidrs=2001:db8:1::10/64,2001:db8::10/64", "192.0.2.10", "192.0.2.10 2001:db8::10"},
		"another network":        {"host-cidrs=2001:db8:1::10/64", "192.0.2.10", "192.0.2.10 2001:db8:1::10"},
		"garbage":                {`host-cidrs=x",7`, "192.0.2.10", "192.0.2.10"},
	}.run(t)
	var n nodeObject
	text := node("n", "", "", `{"type":"Hostname","address":"192.0.2.77"},{"type":"ExternalIP","address":"198.51.100.1"},`+internal("192.0.2.10"))
	testkit.Must(t, json.Unmarshal([]byte(text), &n))
	testkit.Equal(t, testkit.Addrs("192.0.2.10"), newRecord(&n).peer(testSpec(6443)).Addresses)
}

// For a network with VIPs that the status does not list, the annotations count: advertisements
// are sent there.
func TestAddressesElsewhere(t *testing.T) {
	spec := testSpec(6443)
	spec.MachineNetworks = append(spec.MachineNetworks, netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"))
	n := status(t, "", "host-cidrs=192.0.2.99/24,198.51.100.10/24,198.51.100.17/32,203.0.113.10/24", "192.0.2.10")
	before := n.peer(spec)
	spec.Groups = append(spec.Groups, v1alpha1.Group{Name: "api-mgmt", Role: v1alpha1.GroupAPI, VIPs: testkit.Addrs("198.51.100.17")})
	after := n.peer(spec)
	if len(before.Elsewhere) > 0 || !slices.Equal(after.Elsewhere, testkit.Addrs("198.51.100.10")) || !slices.Equal(after.Addresses, testkit.Addrs("192.0.2.10")) {
		t.Errorf("%+v without the VIP, %+v with it", before, after)
	}
	if nodelist.SamePeer(before, after) {
		t.Error("a change without a notification")
	}
}

// With VIPs outside of the machine networks (hard case 44), the prefix lengths of the
// annotations tell which of a node's addresses are in the VIPs' network.
func TestHardCase44AnnotationsHaveTheNetwork(t *testing.T) {
	spec := testSpec(6443)
	spec.MachineNetworks = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}
	spec.Groups = []v1alpha1.Group{{Name: "api", Role: v1alpha1.GroupAPI, VIPs: testkit.Addrs("192.0.2.5", "2001:db8::5")}}
	for name, tt := range map[string]struct{ host, status, addresses, elsewhere string }{
		"the other family":                       {"192.0.3.10/23,2001:db8:0:7::10/56,fd00::10/64", "192.0.3.10", "192.0.3.10 2001:db8:0:7::10", ""},
		"the VIP's network first (hard case 46)": {"192.0.3.10/23,2001:db8:0:7::10/56,2001:db7::10/64", "192.0.3.10", "192.0.3.10 2001:db8:0:7::10", ""},
		"another network in the status":          {"10.0.1.10/16,192.0.3.10/23,2001:db8::10/64", "10.0.1.10", "10.0.1.10 2001:db8::10", "192.0.3.10"},
		"no prefix lengths":                      {"192.0.2.10,2001:db8::10", "192.0.2.10", "192.0.2.10 2001:db8::10", ""},
		"not in the VIP's network":               {"192.0.3.10/24,198.51.100.1/24", "192.0.3.10", "192.0.3.10", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := status(t, "", "host-cidrs="+tt.host, tt.status)
			p := r.peer(spec)
			testkit.Equal(t, testkit.Addrs(strings.Fields(tt.addresses)...), p.Addresses)
			testkit.Equal(t, testkit.Addrs(strings.Fields(tt.elsewhere)...), p.Elsewhere)
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
	want := &record{Name: "n", Labels: labels{{"a", "b"}}, Update: nodelist.Update{
		CurrentConfig: "rendered-1", DesiredConfig: "rendered-2", State: "Working", KubeletVersion: "v1.34.2",
	}}
	testkit.Equal(t, want, newRecord(&n), compareAddrs)
}
