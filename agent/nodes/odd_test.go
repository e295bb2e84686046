package nodes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/agent/nodelist"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/attack"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/templates/coredns"
	"github.com/vipgen/vipgen/templates/haproxy"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// goodNodes are three of the control plane and three workers.
func goodNodes() []string {
	var out []string
	for i := range 3 {
		out = append(out, node(fmt.Sprintf("master-%d", i), masterLabels, "", internal(fmt.Sprintf("192.0.2.%d", 10+i))),
			node(fmt.Sprintf("worker-%d", i), `"node-role.kubernetes.io/worker":""`, "", internal(fmt.Sprintf("192.0.2.%d", 20+i))))
	}
	return out
}

// watchedNodes is a watcher on master-0 with a list of Nodes.
type watchedNodes struct {
	*Watcher
	log  bytes.Buffer
	path string
}

func oddCluster() *v1alpha1.ClusterConfig {
	c := &v1alpha1.ClusterConfig{Metadata: v1alpha1.ClusterMetadata{Name: "demo"}, Spec: *testSpec(6443)}
	c.Spec.ControlPlane.Replicas = 3
	c.Spec.VRRP.Target = v1alpha1.VRRPSettings{Profile: v1alpha1.ProfileFast, Mode: v1alpha1.ModeUnicast, Version: 3, AdvertIntervalMS: 50}
	c.Spec.Groups[0].Instance, c.Spec.Groups[0].VirtualRouterID = "demo_API", 7
	c.Spec.Groups = append(c.Spec.Groups, v1alpha1.Group{
		Name: "ingress", Role: v1alpha1.GroupIngress, VIPs: testkit.Addrs("192.0.2.6"), Instance: "demo_INGRESS", VirtualRouterID: 8,
		NodeSelector: map[string]string{v1alpha1.RoleLabel(v1alpha1.RoleWorker): ""},
	})
	return c
}

// watchNodes returns a watcher that has read the list.
func watchNodes(t testing.TB, texts []string) *watchedNodes {
	t.Helper()
	w := &watchedNodes{path: filepath.Join(t.TempDir(), "nodes.json")}
	var err error
	w.Watcher, err = New(nodelist.Options{
		Node: "master-0", Role: v1alpha1.RoleMaster, Cluster: oddCluster(), Kubeconfig: "none", StateFile: w.path,
		Log: slog.New(slog.NewTextHandler(&w.log, nil)),
	})
	testkit.Must(t, err)
	nodes, err := readList[nodeObject](strings.NewReader(`{"items":[` + strings.Join(texts, ",") + `]}`))
	if err != nil {
		t.Fatalf("%v: %s", err, texts)
	}
	objects := make([]any, 0, len(texts))
	for i := range nodes.(*list[nodeObject]).Items {
		objects = append(objects, &nodes.(*list[nodeObject]).Items[i])
	}
	testkit.Must(t, w.nodes[0].Replace(objects, ""))
	w.publish("the API")
	return w
}

// check verifies that all good nodes are known, that the state is valid in every configuration,
// and that it is on disk for the next start.
func (w *watchedNodes) check(t testing.TB) {
	t.Helper()
	s, ok := w.Current()
	if !ok || !s.Registered {
		t.Fatalf("this node is not registered: %+v", s)
	}
	n := &v1alpha1.Node{
		Name: "master-0", Role: v1alpha1.RoleMaster, Labels: s.Self.Labels, Peers: s.Peers,
		Interfaces: []v1alpha1.Interface{{Name: "ens3", Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.10/24")}, DefaultRoute4: true}},
	}
	testkit.Must(t, n.Validate().Err())
	c := oddCluster()
	api := keepalived.New(c, n).Instances[0]
	testkit.Equal(t, api.Peers, testkit.Addrs("192.0.2.11", "192.0.2.12"))
	testkit.Equal(testkit.In(t, "API servers"), 3, len(haproxy.New(c, n).Backends))
	n.Name, n.Role, n.Labels = "worker-9", v1alpha1.RoleWorker, nil
	ingress := keepalived.New(c, n).Instances[0]
	for _, a := range testkit.Addrs("192.0.2.20", "192.0.2.21", "192.0.2.22") {
		if !slices.Contains(ingress.Peers, a) {
			t.Errorf("%v is no peer of the ingress VIP: %v", a, ingress.Peers)
		}
	}
	hosts, err := coredns.RenderHosts(coredns.HostsTemplate, c, n)
	if err != nil || !bytes.Contains(hosts, []byte("worker-2.demo.example.com")) {
		t.Errorf("hosts file: %v\n%s", err, hosts)
	}
	known, err := readState(w.path, "demo")
	testkit.Check(t, err)
	info, err := os.Stat(w.path)
	testkit.Must(t, err)
	testkit.Equal(t, 0o600, info.Mode())
	again := newSnapshot(known.Nodes, "master-0", &c.Spec, s.Stale, known.Bootstrap)
	testkit.Equal(t, &s, again, compareAddrs)
}

func TestHardCase37OddNode(t *testing.T) {
	workers := `"node-role.kubernetes.io/worker":""`
	annotation := func(key, value string) string {
		text, _ := json.Marshal(value)
		return `,"` + key + `":` + string(text)
	}
	var many []string
	for i := range 30_000 {
		many = append(many, internal(fmt.Sprintf("198.18.%d.%d", i>>8, i&255)))
	}
	for name, c := range map[string]struct {
		node   string
		logged string // in the log
		peer   bool   // whether the node becomes a peer
	}{
		"a role that is no name":   {node("odd", workers+`,"node-role.kubernetes.io/Infra_GPU":""`, "", internal("192.0.2.30")), "Infra_GPU", true},
		"a role of the bootstrap":  {node("odd", `"node-role.kubernetes.io/bootstrap":""`, "", internal("192.0.2.30")), "", true},
		"a name of 64 characters":  {node(strings.Repeat("a", 64), workers, "", internal("192.0.2.30")), "all of it", false},
		"a newline in a word":      {node("odd", workers, annotation("machineconfiguration.openshift.io/state", "Done\nWorking"), internal("192.0.2.30")), "state of the update", true},
		"a letter beyond ASCII":    {node("odd", workers, annotation("machineconfiguration.openshift.io/currentConfig", "rendered-ü"), internal("192.0.2.30")), "current config", true},
		"300 bytes":                {node("odd", workers, annotation("machineconfiguration.openshift.io/desiredConfig", strings.Repeat("x", 300)), internal("192.0.2.30")), "desired config", true},
		"VRRP settings":            {node("odd", workers, annotation("vipgen.io/vrrp", "a\nb"), internal("192.0.2.30")), "VRRP settings", true},
		"30,000 addresses":         {node("odd", workers, "", internal("192.0.2.30")+","+strings.Join(many, ",")), "29745 of 30001 addresses", true},
		"addresses that are none":  {node("odd", workers, "", internal("x")+","+internal("::ffff:192.0.2.1")+","+internal("fe80::1%wg+0")+","+internal("192.0.2.30")), "", true},
		"hosts that are no list":   {node("odd", workers, annotation("k8s.ovn.org/host-cidrs", `{"a":1}`), internal("192.0.2.30")), "", true},
		"another node's addresses": {node("odd", workers, "", internal("192.0.2.11")+","+internal("192.0.2.10")), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := watchNodes(t, append(goodNodes(), c.node))
			w.check(t)
			s, _ := w.Current()
			testkit.Equal(testkit.In(t, describe(s.Peers)), c.peer, len(s.Peers) == 6)
			for _, p := range s.Peers {
				if len(p.Addresses) > maxNodeAddresses {
					t.Errorf("%s has %d addresses", p.Name, len(p.Addresses))
				}
			}
			if lines := strings.Count(w.log.String(), "Nodes ignored"); (c.logged != "") != (lines == 1) || !strings.Contains(w.log.String(), c.logged) {
				t.Errorf("the log does not have %q once:\n%s", c.logged, w.log.String())
			}
			testkit.Equal(t, c.logged != "", w.invalid.Load() == 1)
			if w.log.Len() > 4<<10 {
				t.Errorf("the log has %d bytes", w.log.Len())
			}
		})
	}
}

// TestHardCase37AnyNode tries everything that a kubelet may write to its own Node, and that
// administrators may add: names, labels, annotations, addresses.
func TestHardCase37AnyNode(t *testing.T) {
	const each = 200
	r := rand.New(rand.NewPCG(37, 37))
	for batch := range 5 {
		list := goodNodes()
		for i := range each {
			list = append(list, oddNode(r, batch*each+i))
		}
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		if watchNodes(t, list).check(t); t.Failed() {
			t.Fatalf("batch %d", batch)
		}
	}
}

func oddNode(r *rand.Rand, i int) string {
	names := []string{"localhost", "bootstrap", "api", "api-int", "a.b", strings.Repeat("n", 1+r.IntN(253))}
	odd := attack.NewNode(r, "192.0.2.%d", "192.0.2.5", "2001:db8::5", "192.0.2.10", "192.0.2.11", "192.0.2.20")
	data, _ := json.Marshal(map[string]any{
		"kind": "Node", "apiVersion": "v1",
		"metadata": map[string]any{
			"name":   fmt.Sprintf("odd-%d.%s", i, names[r.IntN(len(names))]),
			"labels": odd.Labels, "annotations": odd.Annotations,
		},
		"status": map[string]any{"addresses": odd.Addresses, "nodeInfo": map[string]string{"kubeletVersion": odd.KubeletVersion}},
	})
	return string(data)
}

// FuzzNode adds an arbitrary object to good nodes.
func FuzzNode(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 20 {
		f.Add([]byte(oddNode(r, i)))
	}
	f.Add([]byte(node("master-0", "", "", internal("192.0.2.99"))))
	f.Fuzz(func(t *testing.T, data []byte) {
		var n nodeObject
		if json.Unmarshal(data, &n) != nil || n.Name == "" || role(n.Labels) == v1alpha1.RoleMaster {
			return // no kubelet may write it
		}
		if good := goodNodes(); !strings.Contains(strings.Join(good, ""), `"name":"`+n.Name+`"`) {
			watchNodes(t, append(good, string(data))).check(t)
		}
	})
}
