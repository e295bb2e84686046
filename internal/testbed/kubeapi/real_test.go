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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/templates/manifest"
)

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
func (p *served) awaitRights() {
	p.t.Helper()
	for _, path := range []string{nodesPath, mapsPath + "?fieldSelector=metadata.name%3Detcd-endpoints"} {
		testkit.Await(p.t, "the right to read "+path, func() bool { status, _ := p.get(kubelet, path); return status == http.StatusOK })
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

// ask sends a request and returns the answer.
func (p *served) ask(r request) replied {
	p.t.Helper()
	resp, text := p.do(r), answerObject{}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	p.must(err)
	if json.Unmarshal(body, &text) != nil {
		text = answerObject{Message: string(body)}
	}
	s := text.replied()
	s.Status = resp.StatusCode
	for _, detail := range details {
		s.Message = strings.TrimSuffix(s.Message, detail)
	}
	return s
}

// TestAsReal sends the same requests to the stand-in and the real server, and compares the
// answers.
func TestAsReal(t *testing.T) {
	testkit.Live(t)
	standIn, real := newStandIn(t), serve(t, func(node *netns.Node, addr netip.Addr) (Plane, error) {
		return NewReal(RealConfig{
			Dir: t.TempDir(), Etcd: testkit.Tool(t, "etcd"), APIServer: testkit.Tool(t, "kube-apiserver"), Node: node, Addr: addr, Domain: domain,
		})
	})
	for _, list := range [][]request{firstRequests(t), requestList()} {
		for _, r := range list { // want is of the real one, got of the stand-in
			testkit.Equal(testkit.In(t, r.method, r.path, "as", r.user), real.ask(r), standIn.ask(r))
		}
		real.awaitRights()
		standIn.awaitRights()
	}
	t.Run("watch", func(t *testing.T) { testkit.Equal(t, real.watchChanges(t), standIn.watchChanges(t)) })
}

// happened is an event of a watch.
type happened struct {
	Type   string
	Object replied
	// Ended marks the end of the initial list.
	Ended bool
}

// setNode creates a node, or changes its address.
func (p *served) setNode(name, addr string) {
	p.t.Helper()
	err := p.Create(p.t.Context(), nodesPath, fmt.Appendf(nil, "{apiVersion: v1, kind: Node, metadata: {name: %s}}", name))
	if err != nil && !errors.Is(err, ErrExists) {
		p.t.Fatal(err)
	}
	p.must(p.Patch(p.t.Context(), nodesPath+"/"+name+"/status",
		fmt.Appendf(nil, "{status: {addresses: [{type: InternalIP, address: %s}]}}", addr)))
}

// events opens a watch, calls do, and returns the events up to the last one.
func (p *served) events(query string, do func(), last func(happened) bool) (out []happened) {
	p.t.Helper()
	resp := p.do(request{admin, "GET", nodesPath + "?watch=true&" + query, ""})
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
func (p *served) watchChanges(t *testing.T) (out []happened) {
	ctx := t.Context()
	_, list := p.get(admin, nodesPath)
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

// served is the API on a node.
type served struct {
	Plane
	t       testing.TB
	node    *netns.Node
	addr    netip.Addr
	server  Server
	clients map[string]*http.Client // by user
}

// newStandIn starts a stand-in.
func newStandIn(t testing.TB) *served {
	t.Helper()
	return serve(t, func(*netns.Node, netip.Addr) (Plane, error) { return NewStandIn(StandInConfig{Domain: domain}) })
}

// serve starts an API server on a node.
func serve(t testing.TB, plane func(*netns.Node, netip.Addr) (Plane, error)) *served {
	t.Helper()
	network, err := netns.New()
	testkit.Must(t, err)
	testkit.Cleanup(t, network.Close)
	p := &served{t: t, addr: netip.MustParseAddr("192.0.2.10"), clients: map[string]*http.Client{}}
	p.node, err = network.AddNode("master-0", netip.PrefixFrom(p.addr, 24))
	p.must(err)
	p.Plane, err = plane(p.node, p.addr)
	p.must(err)
	testkit.Cleanup(t, p.Close)
	p.server, err = p.Server(p.node, p.addr, netip.MustParseAddr("192.0.2.5"))
	p.must(err)
	p.must(p.server.Launch())
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	p.must(p.server.AwaitReady(ctx))
	return p
}

func (p *served) must(err error) {
	p.t.Helper()
	testkit.Must(p.t, err)
}

// client is one of the API as a user; anonymous without a name.
func (p *served) client(user string) *http.Client {
	p.t.Helper()
	if p.clients[user] != nil {
		return p.clients[user]
	}
	config := &tls.Config{RootCAs: p.CA().Pool(), ServerName: internalName(domain)}
	if user != nobody {
		pair, err := p.CA().Client(user, groups[user])
		p.must(err)
		cert, err := pair.TLS()
		p.must(err)
		config.Certificates = []tls.Certificate{cert}
	}
	transport := &http.Transport{
		TLSClientConfig: config, ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return p.node.DialContext(ctx, network, netip.AddrPortFrom(p.addr, port).String())
		},
	}
	p.t.Cleanup(transport.CloseIdleConnections)
	p.clients[user] = &http.Client{Transport: transport, Timeout: testkit.Patience}
	return p.clients[user]
}

// do sends a request.
func (p *served) do(r request) *http.Response {
	p.t.Helper()
	body, err := yaml.YAMLToJSON([]byte(r.body))
	p.must(err)
	if r.body == "" {
		body = nil
	}
	req, err := http.NewRequestWithContext(p.t.Context(), r.method, "https://"+internalName(domain)+":6443"+r.path, bytes.NewReader(body))
	p.must(err)
	req.Header.Set("Content-Type", map[bool]string{true: mergePatch, false: "application/json"}[r.method == http.MethodPatch])
	resp, err := p.client(r.user).Do(req)
	p.must(err)
	return resp
}

// get returns the answer to a request.
func (p *served) get(user, path string) (int, string) {
	p.t.Helper()
	resp := p.do(request{user, "GET", path, ""})
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	p.must(err)
	return resp.StatusCode, string(body)
}

// A server that shuts down reports it at /readyz, and answers all other requests (hard case 8).
func TestStop(t *testing.T) {
	testkit.Live(t)
	p := newStandIn(t)
	delay := make(chan time.Time)
	p.Plane.(*standIn).delay = func() <-chan time.Time { return delay }
	ended := make(chan error, 2)
	resp := p.do(request{admin, "GET", nodesPath + "?watch=true", ""})
	defer resp.Body.Close()
	go func() { _, err := io.Copy(io.Discard, resp.Body); ended <- err }()
	go func() { ended <- p.server.Stop(t.Context()) }()
	for said := false; !said; {
		status, body := p.get(admin, "/readyz")
		said = status == http.StatusInternalServerError && strings.Contains(body, "[-]shutdown failed")
	}
	for _, path := range []string{"/livez", "/healthz", nodesPath} {
		status, _ := p.get(admin, path)
		testkit.Equal(testkit.In(t, path), http.StatusOK, status)
	}
	p.setNode("worker-0", "192.0.2.20")
	close(delay)
	p.must(<-ended)
	p.must(<-ended)
	testkit.Equal(testkit.In(t, "it runs after Stop"), false, p.server.Running())
}
