package keepalived

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/vipgen/vipgen/lab/netns"
)

// list is the cluster's list of nodes, which the API servers of all nodes serve.
type list struct {
	mu      sync.Mutex
	nodes   map[string]json.RawMessage
	events  []string // the n-th has resource version n+1
	changed chan struct{}
}

func newList() *list {
	return &list{nodes: map[string]json.RawMessage{}, changed: make(chan struct{})}
}

// set registers a node or changes it.
func (l *list) set(name, role, address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kind := "ADDED"
	if l.nodes[name] != nil {
		kind = "MODIFIED"
	}
	l.nodes[name] = fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Node","metadata":{"name":%q,"resourceVersion":"%d","labels":{"node-role.kubernetes.io/%s":""}},"status":{"addresses":[{"type":"InternalIP","address":%q}]}}`,
		name, len(l.events)+1, role, address)
	l.event(kind, name)
}

// remove takes a node from the list.
func (l *list) remove(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.event("DELETED", name)
	delete(l.nodes, name)
}

func (l *list) event(kind, name string) {
	l.events = append(l.events, fmt.Sprintf("{\"type\":%q,\"object\":%s}\n", kind, l.nodes[name]))
	close(l.changed)
	l.changed = make(chan struct{})
}

// apiServer is that of one node.
type apiServer struct {
	*list
	*httptest.Server
	unready atomic.Bool // readyz says 500, as from the start of a shutdown
}

// serveAPI starts the API server of a node, on loopback, until the test ends.
func serveAPI(t *testing.T, node *netns.Node, l *list) *apiServer {
	t.Helper()
	s := &apiServer{list: l}
	s.Server = httptest.NewUnstartedServer(s)
	s.Listener.Close()
	s.Listener = listen(t, node, 6443)
	s.TLS = &tls.Config{NextProtos: []string{"http/1.1"}}
	s.StartTLS()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func listen(t *testing.T, node *netns.Node, port int) (l net.Listener) {
	t.Helper()
	err := node.Do(func() (err error) {
		l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	watch := r.URL.Query().Get("watch") != ""
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path == "/readyz":
		if s.unready.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
		io.WriteString(w, "ok")
	case r.URL.Path == "/api/v1/nodes" && watch:
		s.watch(w, r)
	case r.URL.Path == "/api/v1/nodes":
		s.mu.Lock()
		defer s.mu.Unlock()
		var items []json.RawMessage
		for _, n := range s.nodes {
			items = append(items, n)
		}
		all, _ := json.Marshal(items)
		fmt.Fprintf(w, `{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"%d"},"items":%s}`, len(s.events), all)
	case r.URL.Path == "/api/v1/namespaces/openshift-ingress/pods" && watch:
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case r.URL.Path == "/api/v1/namespaces/openshift-ingress/pods":
		io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (s *apiServer) watch(w http.ResponseWriter, r *http.Request) {
	next, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	w.(http.Flusher).Flush()
	for {
		s.mu.Lock()
		events, changed := s.events[next:], s.changed
		s.mu.Unlock()
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
