package nodes

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit/daemon"
)

// fakeCluster is what all fake API servers of a test serve: nodes, and a log of
// their changes.
type fakeCluster struct {
	t  testing.TB
	ca *daemon.Authority

	mu      sync.Mutex
	nodes   map[string]string
	events  []string // the n-th has resource version n+1
	changed chan struct{}
	refused bool
	users   map[string]int // requests by the client certificate's serial number
}

func newFakeCluster(t testing.TB) *fakeCluster {
	return &fakeCluster{
		t: t, ca: daemon.NewAuthority(t, "test-signer"), nodes: map[string]string{},
		changed: make(chan struct{}), users: map[string]int{},
	}
}

func (c *fakeCluster) event(kind, object string) {
	c.events = append(c.events, `{"type":"`+kind+`","object":`+strings.ReplaceAll(object, "\n", "")+"}\n")
	close(c.changed)
	c.changed = make(chan struct{})
}

// set makes or changes a node.
func (c *fakeCluster) set(name, labels, addr string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kind := "ADDED"
	if _, ok := c.nodes[name]; ok {
		kind = "MODIFIED"
	}
	text := strings.Replace(node(name, labels, "", internal(addr)),
		`"resourceVersion":"7"`, `"resourceVersion":"`+strconv.Itoa(len(c.events)+1)+`"`, 1)
	c.nodes[name] = text
	c.event(kind, text)
}

func (c *fakeCluster) remove(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.event("DELETED", c.nodes[name])
	delete(c.nodes, name)
}

// refuse switches the refusal of everything on or off.
func (c *fakeCluster) refuse(refused bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = refused
}

func (c *fakeCluster) userCount() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.users)
}

func (c *fakeCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	if len(r.TLS.PeerCertificates) > 0 {
		c.users[r.TLS.PeerCertificates[0].SerialNumber.String()]++
	}
	refused := c.refused
	list := fmt.Sprintf(`{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"%d"},"items":[%s]}`,
		len(c.events), strings.Join(slices.Collect(maps.Values(c.nodes)), ","))
	c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path == "/readyz":
		io.WriteString(w, "ok")
	case r.URL.Path != "/api/v1/nodes":
		w.WriteHeader(http.StatusNotFound)
	case refused:
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,
			"message":"nodes is forbidden: User \"system:node:master-0\" cannot list resource \"nodes\""}`)
	case r.URL.Query().Get("watch") == "":
		io.WriteString(w, list)
	default:
		c.watch(w, r)
	}
}

func (c *fakeCluster) watch(w http.ResponseWriter, r *http.Request) {
	next, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.(http.Flusher).Flush()
	for {
		c.mu.Lock()
		events, changed := slices.Clone(c.events[min(next, len(c.events)):]), c.changed
		c.mu.Unlock()
		next += len(events)
		for _, e := range events {
			if _, err := io.WriteString(w, e); err != nil {
				return
			}
		}
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// fakeServer is an API server of a fakeCluster.
type fakeServer struct {
	cluster *fakeCluster
	addr    string
	cert    tls.Certificate
	server  *httptest.Server // nil while it is down

	frozen sync.RWMutex // locked while nothing is sent

	mu    sync.Mutex
	conns map[net.Conn]bool // open ones
}

// mute is a listener whose connections send nothing while the server is frozen.
// The kernel goes on taking connections for it.
type mute struct {
	net.Listener
	frozen *sync.RWMutex
}

func (m mute) Accept() (net.Conn, error) {
	c, err := m.Listener.Accept()
	return mutedConn{c, m.frozen}, err
}

type mutedConn struct {
	net.Conn
	frozen *sync.RWMutex
}

func (c mutedConn) Write(p []byte) (int, error) {
	c.frozen.RLock()
	defer c.frozen.RUnlock()
	return c.Conn.Write(p)
}

// serve makes a server at an address, such as 127.0.0.1:0, and starts it.
func (c *fakeCluster) serve(addr string) *fakeServer {
	c.t.Helper()
	pair := c.ca.Serving("api-int.demo.example.com")
	cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		c.t.Fatal(err)
	}
	s := &fakeServer{cluster: c, addr: addr, cert: cert, conns: map[net.Conn]bool{}}
	s.start()
	c.t.Cleanup(s.stop)
	return s
}

func (s *fakeServer) start() {
	s.cluster.t.Helper()
	l, err := net.Listen("tcp", s.addr)
	if err != nil {
		s.cluster.t.Fatal(err)
	}
	s.addr = l.Addr().String()
	s.server = &httptest.Server{
		Listener:    mute{l, &s.frozen},
		EnableHTTP2: true,
		TLS: &tls.Config{
			Certificates: []tls.Certificate{s.cert}, ClientCAs: s.cluster.ca.Pool(), ClientAuth: tls.RequireAndVerifyClientCert,
		},
		Config: &http.Server{Handler: s.cluster, ConnState: s.count, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)},
	}
	s.server.StartTLS()
}

func (s *fakeServer) stop() {
	if s.server == nil {
		return
	}
	daemon.CloseServer(s.server)
	s.server = nil
}

func (s *fakeServer) count(c net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state == http.StateClosed {
		delete(s.conns, c)
	} else {
		s.conns[c] = true
	}
}

func (s *fakeServer) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

func (s *fakeServer) port() int {
	_, port, _ := net.SplitHostPort(s.addr)
	n, _ := strconv.Atoi(port)
	return n
}

// logBuffer gathers a log.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// lines counts the lines with a text.
func (l *logBuffer) lines(text string) (n int) {
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}
