package keepalived

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/vipgen/vipgen/golden/daemon"
	"github.com/vipgen/vipgen/lab/netns"
)

// collection is one kind of objects in the API.
type collection struct {
	mu      sync.Mutex
	kind    string
	objects map[string]json.RawMessage
	events  []string // the n-th has resource version n+1
	changed chan struct{}
}

func newCollection(kind string) *collection {
	return &collection{kind: kind, objects: map[string]json.RawMessage{}, changed: make(chan struct{})}
}

// set makes an object or changes it. more are its members in JSON, and those of
// its metadata but for the name.
func (c *collection) set(name, metadata, more string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	event := "ADDED"
	if c.objects[name] != nil {
		event = "MODIFIED"
	}
	c.objects[name] = fmt.Appendf(nil, `{"apiVersion":"v1","kind":%q,"metadata":{"name":%q,"resourceVersion":"%d",%s}%s}`,
		c.kind, name, len(c.events)+1, metadata, more)
	c.event(event, name)
}

// annotate merges annotations into an object, as a patch does.
func (c *collection) annotate(name string, patch []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var object, change map[string]any
	if err := errors.Join(json.Unmarshal(c.objects[name], &object), json.Unmarshal(patch, &change)); err != nil {
		return err
	}
	metadata := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if annotations == nil {
		annotations = map[string]any{}
	}
	fresh, _ := change["metadata"].(map[string]any)["annotations"].(map[string]any)
	maps.Copy(annotations, fresh)
	metadata["annotations"], metadata["resourceVersion"] = annotations, strconv.Itoa(len(c.events)+1)
	data, err := json.Marshal(object)
	if err != nil {
		return err
	}
	c.objects[name] = data
	c.event("MODIFIED", name)
	return nil
}

// remove takes an object from the list.
func (c *collection) remove(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.event("DELETED", name)
	delete(c.objects, name)
}

func (c *collection) event(kind, name string) {
	c.events = append(c.events, fmt.Sprintf("{\"type\":%q,\"object\":%s}\n", kind, c.objects[name]))
	close(c.changed)
	c.changed = make(chan struct{})
}

// list is what the API servers of all nodes serve: the nodes, where the bootstrap
// is, and of each node its router of the default ingress controller.
type list struct {
	nodes, endpoints *collection

	mu      sync.Mutex
	routers map[string]*collection // by node
	// outdated are hosts whose credentials have expired.
	outdated []string
}

func newList() *list {
	return &list{nodes: newCollection("Node"), endpoints: newCollection("ConfigMap"), routers: map[string]*collection{}}
}

// routersOf are the router pods of a node.
func (l *list) routersOf(node string) *collection {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.routers[node] == nil {
		l.routers[node] = newCollection("Pod")
	}
	return l.routers[node]
}

// route says whether a ready router runs on the node.
func (l *list) route(node string, here bool) { l.routeOf("default", node, here) }

// routeOf is route for a router of any ingress controller.
func (l *list) routeOf(controller, node string, here bool) {
	pods, name := l.routersOf(node), "router-"+controller+"-"+node
	if !here {
		pods.remove(name)
		return
	}
	pods.set(name, fmt.Sprintf(`"labels":{"ingresscontroller.operator.openshift.io/deployment-ingresscontroller":%q}`, controller),
		`,"status":{"conditions":[{"type":"Ready","status":"True"}]}`)
}

// set registers a node or changes it.
func (l *list) set(name, role, address string) {
	l.nodes.set(name, fmt.Sprintf(`"labels":{"node-role.kubernetes.io/%s":""}`, role),
		fmt.Sprintf(`,"status":{"addresses":[{"type":"InternalIP","address":%q}]}`, address))
}

// expire makes the credentials of a host worth nothing, wherever it asks.
func (l *list) expire(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outdated = append(l.outdated, address)
}

func (l *list) expired(remote string) bool {
	host, _, _ := net.SplitHostPort(remote)
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.outdated, host)
}

// remove takes a node from the list.
func (l *list) remove(name string) { l.nodes.remove(name) }

// bootstrap says where the bootstrap is, or with nothing that it is gone.
func (l *list) bootstrap(address string) {
	l.endpoints.set("etcd-endpoints", fmt.Sprintf(`"annotations":{"alpha.installer.openshift.io/etcd-bootstrap":%q}`, address), "")
}

// apiServer is that of one node.
type apiServer struct {
	*list
	*httptest.Server
	unready atomic.Bool // readyz says 500, as from the start of a shutdown
	away    atomic.Bool // nobody is told anything: 401
}

// serveAPI starts the API server of a node, on all of its addresses, until the
// test ends.
func serveAPI(t *testing.T, node *netns.Node, l *list) *apiServer {
	t.Helper()
	s := &apiServer{list: l}
	s.Server = httptest.NewUnstartedServer(s)
	s.Listener.Close()
	s.Listener = listen(t, node, ":6443")
	s.TLS = &tls.Config{NextProtos: []string{"http/1.1"}}
	s.StartTLS()
	t.Cleanup(func() { daemon.CloseServer(s.Server) })
	return s
}

func listen(t *testing.T, node *netns.Node, address string) (l net.Listener) {
	t.Helper()
	err := node.Do(func() (err error) {
		l, err = net.Listen("tcp", address)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if s.away.Load() || s.expired(r.RemoteAddr) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if name, ok := strings.CutPrefix(r.URL.Path, "/api/v1/nodes/"); ok && r.Method == http.MethodPatch {
		patch, err := io.ReadAll(r.Body)
		if err == nil {
			err = s.nodes.annotate(name, patch)
		}
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
		}
		io.WriteString(w, "{}")
		return
	}
	switch r.URL.Path {
	case "/readyz":
		if s.unready.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
		io.WriteString(w, "ok")
	case "/api/v1/nodes":
		s.nodes.serve(w, r)
	case "/api/v1/namespaces/openshift-etcd/configmaps":
		s.endpoints.serve(w, r)
	case "/api/v1/namespaces/openshift-ingress/pods":
		// A node may ask for its own alone.
		s.routersOf(strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "spec.nodeName=")).serve(w, r)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (c *collection) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("watch") != "" {
		c.watch(w, r)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	items := []json.RawMessage{}
	for _, o := range c.objects {
		items = append(items, o)
	}
	all, _ := json.Marshal(items)
	fmt.Fprintf(w, `{"kind":"%sList","apiVersion":"v1","metadata":{"resourceVersion":"%d"},"items":%s}`, c.kind, len(c.events), all)
}

func (c *collection) watch(w http.ResponseWriter, r *http.Request) {
	next, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	w.(http.Flusher).Flush()
	for {
		c.mu.Lock()
		events, changed := c.events[next:], c.changed
		c.mu.Unlock()
		for _, e := range events {
			io.WriteString(w, e)
		}
		w.(http.Flusher).Flush()
		next += len(events)
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		}
	}
}
