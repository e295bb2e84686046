package kubeapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/templates/manifest"
)

// newReal starts the real etcd and one kube-apiserver.
func newReal(t *testing.T) *pair {
	t.Helper()
	p := newNodes(t)
	var err error
	p.Plane, err = NewReal(RealConfig{
		Dir: t.TempDir(), Etcd: testkit.Tool(t, "etcd"), APIServer: testkit.Tool(t, "kube-apiserver"),
		Node: p.nodes[1], Addr: p.addrs[1], Domain: domain,
	})
	p.must(err)
	p.launch(0)
	return p
}

// Users of requests.
const (
	admin   = "admin"
	kubelet = "system:node:worker-0"
	nobody  = ""
)

// groups holds the groups of the users.
var groups = map[string]string{admin: administrators, kubelet: nodeGroup, nobody: ""}

const (
	nodesPath = "/api/v1/nodes"
	podsPath  = "/api/v1/namespaces/openshift-ingress/pods"
	mapsPath  = "/api/v1/namespaces/openshift-etcd/configmaps"
	leasePath = "/apis/coordination.k8s.io/v1/namespaces/openshift-etcd/leases"
	rbacPath  = "/apis/rbac.authorization.k8s.io/v1/"
	etcdRBAC  = rbacPath + "namespaces/openshift-etcd/"
)

// request is sent to both servers.
type request struct {
	user, method, path, body string
}

// firstRequests create the namespaces and the rights that the others need.
func firstRequests(t *testing.T) []request {
	rendered := func(name string) string {
		data, err := manifest.Render(name, manifest.Params{})
		testkit.Must(t, err)
		return string(data)
	}
	space := func(name string) string { return "{apiVersion: v1, kind: Namespace, metadata: {name: " + name + "}}" }
	return []request{
		{admin, "POST", "/api/v1/namespaces", space("openshift-ingress")},
		{admin, "POST", "/api/v1/namespaces", space("openshift-etcd")},
		{admin, "POST", rbacPath + "clusterroles", rendered(manifest.ClusterRole)},
		{admin, "POST", rbacPath + "clusterrolebindings", rendered(manifest.ClusterRoleBinding)},
		{admin, "POST", etcdRBAC + "roles", rendered(manifest.Role)},
		{admin, "POST", etcdRBAC + "rolebindings", rendered(manifest.RoleBinding)},
	}
}

// awaitRights waits until the rights are effective, which takes a real server a moment.
func (p *pair) awaitRights() {
	p.t.Helper()
	client := p.client(0, kubelet, nodeGroup)
	for _, path := range []string{nodesPath, mapsPath + "?fieldSelector=metadata.name%3Detcd-endpoints"} {
		testkit.Await(p.t, "the right to read "+path, func() bool {
			status, _, err := get(client, path)
			return err == nil && status == http.StatusOK
		})
	}
}

// requestList covers the requests of agents and the lab, and invalid ones.
func requestList() []request {
	node := func(name, labels string) string {
		return "{apiVersion: v1, kind: Node, metadata: {name: " + name + ", labels: {" + labels + "}}}"
	}
	pod := func(name, node string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {name: " + name + ", labels: {a: b}}, spec: {nodeName: " + node + ", containers: [{name: a, image: a}]}}"
	}
	configMap := func(name string) string { return "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + "}}" }
	const lease = "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: x}, spec: {holderIdentity: a}}"
	return []request{
		{nobody, "GET", "/readyz", ""},
		{nobody, "GET", "/livez", ""},
		{nobody, "GET", "/healthz", ""},
		{admin, "GET", "/nowhere", ""},
		{admin, "GET", "/api/v1/nowhere", ""},
		{admin, "GET", nodesPath, ""},
		{admin, "POST", nodesPath, node("worker-0", "a: b")},
		{admin, "POST", nodesPath, node("worker-0", "a: b")},
		{admin, "POST", nodesPath, node("worker-1", "c: d")},
		{admin, "POST", nodesPath, configMap("x")},
		{admin, "POST", nodesPath + "/worker-0", node("worker-0", "")},
		{admin, "GET", nodesPath + "/worker-0", ""},
		{admin, "GET", nodesPath + "/worker-9", ""},
		{admin, "PATCH", nodesPath + "/worker-0/status", "{status: {addresses: [{type: InternalIP, address: 192.0.2.20}]}, spec: {unschedulable: true}}"},
		{admin, "PATCH", nodesPath + "/worker-0", "{metadata: {labels: {a: null, e: f}}, status: {addresses: null}}"},
		{admin, "PATCH", nodesPath + "/worker-9", "{metadata: {labels: {e: f}}}"},
		{admin, "PATCH", nodesPath + "/worker-0", "{metadata: {resourceVersion: '1', labels: {e: g}}}"},
		{admin, "PUT", nodesPath + "/worker-0", node("worker-0", "e: f, g: h")},
		{admin, "PUT", nodesPath + "/worker-9", node("worker-9", "")},
		{admin, "POST", leasePath, lease},
		{admin, "PUT", leasePath + "/x", strings.Replace(lease, "name: x", "name: x, resourceVersion: '1'", 1)},
		{admin, "GET", leasePath + "/x", ""},
		{admin, "GET", nodesPath + "?labelSelector=e", ""},
		{admin, "GET", nodesPath + "?labelSelector=e%3Df,!c", ""},
		{admin, "GET", nodesPath + "?labelSelector=c+in+(d,x)", ""},
		{admin, "GET", nodesPath + "?labelSelector=%3D%3D", ""},
		{admin, "GET", nodesPath + "?fieldSelector=metadata.name%3Dworker-1", ""},
		{admin, "GET", nodesPath + "?fieldSelector=spec.nodeName%3Dworker-1", ""},

		{admin, "POST", podsPath, pod("router-0", "worker-0")},
		{admin, "POST", podsPath, pod("router-1", "worker-1")},
		{admin, "POST", "/api/v1/namespaces/elsewhere/pods", pod("router-1", "worker-1")},
		{admin, "PATCH", podsPath + "/router-0/status", "{status: {conditions: [{type: Ready, status: 'True'}]}}"},
		{admin, "GET", podsPath + "?fieldSelector=spec.nodeName%3Dworker-0&labelSelector=a%3Db", ""},
		{admin, "GET", "/api/v1/pods", ""},
		{admin, "POST", mapsPath, configMap("etcd-endpoints")},
		{admin, "POST", mapsPath, configMap("other")},

		{kubelet, "GET", nodesPath, ""},
		{kubelet, "GET", nodesPath + "/worker-1", ""},
		{kubelet, "DELETE", nodesPath + "/worker-1", ""},
		{kubelet, "GET", podsPath + "?fieldSelector=spec.nodeName%3Dworker-0", ""},
		{kubelet, "GET", podsPath + "?fieldSelector=spec.nodeName%3Dworker-1", ""},
		{kubelet, "GET", podsPath, ""},
		{kubelet, "GET", mapsPath + "?fieldSelector=metadata.name%3Detcd-endpoints", ""},
		{kubelet, "GET", mapsPath + "/etcd-endpoints", ""},
		{kubelet, "GET", mapsPath, ""},
		{kubelet, "GET", rbacPath + "clusterroles", ""},
		{nobody, "GET", nodesPath, ""},

		{admin, "DELETE", podsPath + "/router-1?gracePeriodSeconds=0", ""},
		{admin, "DELETE", podsPath + "/router-1?gracePeriodSeconds=0", ""},
		{admin, "GET", podsPath, ""},
		{admin, "DELETE", nodesPath + "/worker-1", ""},
		{admin, "GET", nodesPath, ""},
	}
}

// replied holds the compared part of an answer.
type replied struct {
	Status     int
	Kind       string
	Reason     string
	Message    string
	Name       string
	Namespace  string
	Labels     map[string]string
	Addresses  []string
	Conditions []string
	Items      []replied
}

// answerObject is the common structure of the API's answers.
type answerObject struct {
	Kind, Reason, Message string
	Metadata              struct {
		Name, Namespace string
		Labels          map[string]string
		Annotations     map[string]string
	}
	Status json.RawMessage
	Items  []answerObject
}

func (o answerObject) replied() replied {
	s := replied{
		Kind: o.Kind, Reason: o.Reason, Message: o.Message,
		Name: o.Metadata.Name, Namespace: o.Metadata.Namespace, Labels: o.Metadata.Labels,
	}
	var status struct {
		Addresses  []struct{ Address string }
		Conditions []struct{ Type, Status string }
	}
	json.Unmarshal(o.Status, &status) // a refusal has a string here
	for _, a := range status.Addresses {
		s.Addresses = append(s.Addresses, a.Address)
	}
	for _, c := range status.Conditions {
		s.Conditions = append(s.Conditions, c.Type+"="+c.Status)
	}
	for _, item := range o.Items {
		item.Kind = "" // items of a list may omit it
		s.Items = append(s.Items, item.replied())
	}
	slices.SortFunc(s.Items, func(a, b replied) int { return strings.Compare(a.Name, b.Name) })
	return s
}

// details matches text that only the real server returns: the reason of one of its authorizers,
// and messages of code that the stand-in lacks.
var details = []string{
	": can only list/watch pods with spec.nodeName field selector",
	": No Object name found",
	": converting (v1.ConfigMap) to (core.Node): unknown conversion",
}

// ask sends the requests and returns the answers.
func (p *pair) ask(list []request) (out []replied) {
	p.t.Helper()
	clients := map[string]*http.Client{}
	for user, group := range groups {
		clients[user] = p.client(0, user, group)
	}
	for _, r := range list {
		body, err := yaml.YAMLToJSON([]byte(r.body))
		p.must(err)
		if r.body == "" {
			body = nil
		}
		req, err := http.NewRequestWithContext(p.t.Context(), r.method, "https://"+internalName(domain)+":6443"+r.path, bytes.NewReader(body))
		p.must(err)
		req.Header.Set("Content-Type", "application/json")
		if r.method == http.MethodPatch {
			req.Header.Set("Content-Type", mergePatch)
		}
		resp, err := clients[r.user].Do(req)
		p.must(err)
		text, err := io.ReadAll(resp.Body)
		p.must(err)
		resp.Body.Close()
		var o answerObject
		if json.Unmarshal(text, &o) != nil {
			o = answerObject{Message: string(text)}
		}
		s := o.replied()
		s.Status = resp.StatusCode
		for _, detail := range details {
			s.Message = strings.TrimSuffix(s.Message, detail)
		}
		out = append(out, s)
	}
	return out
}

// TestAsReal sends the same requests to the stand-in and the real server, and compares the
// answers.
func TestAsReal(t *testing.T) {
	testkit.Live(t)
	real, standIn := newReal(t), newPair(t)
	for _, list := range [][]request{firstRequests(t), requestList()} {
		want, got := real.ask(list), standIn.ask(list)
		for i, r := range list {
			if diff := cmp.Diff(want[i], got[i]); diff != "" {
				t.Errorf("%s %s as %q (- as the real one, + as the stand-in):\n%s", r.method, r.path, r.user, diff)
			}
		}
		real.awaitRights()
		standIn.awaitRights()
	}
	t.Run("watch", func(t *testing.T) {
		want, got := real.watchChanges(t), standIn.watchChanges(t)
		testkit.Equal(t, want, got)
	})
}

// happened is an event of a watch.
type happened struct {
	Type   string
	Object replied
	// Ended marks the end of the initial list.
	Ended bool
}

// setNode creates a node, or changes its address.
func (p *pair) setNode(name, addr string) {
	p.t.Helper()
	err := p.Create(p.t.Context(), nodesPath, fmt.Appendf(nil, "{apiVersion: v1, kind: Node, metadata: {name: %s}}", name))
	if err != nil && !errors.Is(err, ErrExists) {
		p.t.Fatal(err)
	}
	p.must(p.Patch(p.t.Context(), nodesPath+"/"+name+"/status",
		fmt.Appendf(nil, "{status: {addresses: [{type: InternalIP, address: %s}]}}", addr)))
}

// events opens a watch, calls do, and returns the events up to the last one.
func (p *pair) events(query string, do func(), last func(happened) bool) (out []happened) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, "https://"+internalName(domain)+":6443"+nodesPath+"?watch=true&"+query, nil)
	p.must(err)
	resp, err := p.client(0, admin, administrators).Do(req)
	p.must(err)
	defer resp.Body.Close()
	do()
	d := json.NewDecoder(resp.Body)
	for {
		var e struct {
			Type   string
			Object answerObject
		}
		p.must(d.Decode(&e))
		h := happened{e.Type, e.Object.replied(), e.Object.Metadata.Annotations[metav1.InitialEventsAnnotationKey] == "true"}
		out = append(out, h)
		if last(h) {
			return out
		}
	}
}

// watchChanges watches a selection of the nodes while they are created, deleted, and start or
// stop matching.
func (p *pair) watchChanges(t *testing.T) (out []happened) {
	ctx := t.Context()
	_, list, err := get(p.client(0, admin, administrators), nodesPath)
	p.must(err)
	var at metav1.List
	p.must(json.Unmarshal([]byte(list), &at))
	label := func(name, value string) {
		p.must(p.Patch(ctx, nodesPath+"/"+name, fmt.Appendf(nil, "{metadata: {labels: {w: %s}}}", value)))
	}
	out = p.events("labelSelector=w&resourceVersion="+at.ResourceVersion, func() {
		p.setNode("n0", "192.0.2.30")
		label("n0", "x")
		p.setNode("n0", "192.0.2.31")
		p.setNode("n0", "192.0.2.31") // no change
		label("n0", "null")
		p.setNode("n0", "192.0.2.32")
		label("n0", "z")
		p.setNode("n1", "192.0.2.33")
		label("n1", "x")
		p.must(p.Delete(ctx, nodesPath+"/n1"))
	}, func(h happened) bool { return h.Type == "DELETED" && h.Object.Name == "n1" })

	return append(out, p.events("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
		func() {}, func(h happened) bool { return h.Type == "BOOKMARK" })...)
}

const domain = "demo.example.com"

// pair is the API on two nodes of a network, master-0 and master-1.
type pair struct {
	Plane
	t       testing.TB
	nodes   [2]*netns.Node
	addrs   [2]netip.Addr
	servers [2]Server
}

// newPair starts a stand-in on both nodes.
func newPair(t testing.TB) *pair {
	t.Helper()
	p := newNodes(t)
	var err error
	p.Plane, err = NewStandIn(StandInConfig{Domain: domain})
	p.must(err)
	p.launch(0, 1)
	return p
}

// newNodes makes the nodes.
func newNodes(t testing.TB) *pair {
	t.Helper()
	network, err := netns.New()
	testkit.Must(t, err)
	testkit.Cleanup(t, network.Close)
	p := &pair{t: t}
	for i := range p.nodes {
		p.addrs[i] = netip.AddrFrom4([4]byte{192, 0, 2, byte(10 + i)})
		p.nodes[i], err = network.AddNode(fmt.Sprintf("master-%d", i), netip.PrefixFrom(p.addrs[i], 24))
		p.must(err)
	}
	return p
}

// launch starts API servers on nodes.
func (p *pair) launch(on ...int) {
	p.t.Helper()
	p.t.Cleanup(func() { p.must(p.Close()) })
	for _, i := range on {
		var err error
		p.servers[i], err = p.Server(p.nodes[i], p.addrs[i], netip.MustParseAddr("192.0.2.5"))
		p.must(err)
		p.must(p.servers[i].Launch())
	}
	ctx, cancel := context.WithTimeout(p.t.Context(), testkit.Patience)
	defer cancel()
	for _, i := range on {
		p.must(p.servers[i].AwaitReady(ctx))
	}
}

func (p *pair) must(err error) {
	p.t.Helper()
	testkit.Must(p.t, err)
}

// client is one of the API on a node, as the given user; anonymous without a name.
func (p *pair) client(node int, name string, groups ...string) *http.Client {
	p.t.Helper()
	config := &tls.Config{RootCAs: p.CA().Pool(), ServerName: internalName(domain)}
	if name != "" {
		pair, err := p.CA().Client(name, groups...)
		p.must(err)
		cert, err := pair.TLS()
		p.must(err)
		config.Certificates = []tls.Certificate{cert}
	}
	transport := &http.Transport{
		TLSClientConfig: config, ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return p.nodes[node].DialContext(ctx, network, netip.AddrPortFrom(p.addrs[node], port).String())
		},
	}
	p.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: testkit.Patience}
}

// get returns the answer to a request.
func get(client *http.Client, path string) (int, string, error) {
	resp, err := client.Get("https://" + internalName(domain) + ":6443" + path)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

// A server that shuts down reports it at /readyz, and answers all other requests (hard case 8).
func TestStop(t *testing.T) {
	testkit.Live(t)
	p := newPair(t)
	delay := make(chan time.Time)
	p.Plane.(*standIn).delay = func() <-chan time.Time { return delay }
	client := p.client(0, admin, administrators)
	ended := make(chan error, 2)
	resp, err := client.Get("https://" + internalName(domain) + ":6443" + nodesPath + "?watch=true")
	p.must(err)
	defer resp.Body.Close()
	go func() { _, err := io.Copy(io.Discard, resp.Body); ended <- err }()
	go func() { ended <- p.servers[0].Stop(t.Context()) }()
	for said := false; !said; {
		status, body, err := get(client, "/readyz")
		p.must(err)
		said = status == http.StatusInternalServerError && strings.Contains(body, "[-]shutdown failed")
	}
	for path, want := range map[string]int{"/livez": 200, "/healthz": 200, nodesPath: 200} {
		if status, body, err := get(client, path); err != nil || status != want {
			t.Errorf("%s: %d %v %s", path, status, err, body)
		}
	}
	p.setNode("worker-0", "192.0.2.20")
	close(delay)
	p.must(<-ended)
	p.must(<-ended)
	if p.servers[0].Running() {
		t.Error("it runs after Stop")
	}
}
