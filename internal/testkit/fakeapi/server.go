package fakeapi

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Server is an API server, which can be stopped, started again, and made to behave
// badly.
type Server struct {
	// Unready makes /readyz say 500, as from the start of a shutdown.
	Unready atomic.Bool
	// Away makes it tell nobody anything: 401.
	Away atomic.Bool

	t       testing.TB
	listen  func() (net.Listener, error)
	tls     *tls.Config
	cluster atomic.Pointer[Cluster]
	server  *httptest.Server // nil while it is stopped
	frozen  sync.RWMutex     // locked while nothing is sent

	mu    sync.Mutex
	conns map[net.Conn]bool // open ones
}

// Serve starts a server of a cluster until the test ends. listen opens the same port
// each time; without certificates in config it makes one of its own.
func Serve(t testing.TB, c *Cluster, config *tls.Config, listen func() (net.Listener, error)) *Server {
	t.Helper()
	s := &Server{t: t, listen: listen, tls: config, conns: map[net.Conn]bool{}}
	s.cluster.Store(c)
	s.Start()
	t.Cleanup(s.Stop)
	return s
}

// Show makes it serve another cluster, as one that is cut off from the others does.
func (s *Server) Show(c *Cluster) { s.cluster.Store(c) }

// Start starts it again.
func (s *Server) Start() {
	s.t.Helper()
	l, err := s.listen()
	if err != nil {
		s.t.Fatal(err)
	}
	s.server = &httptest.Server{
		Listener: mute{l, &s.frozen}, EnableHTTP2: true, TLS: s.tls.Clone(),
		Config: &http.Server{Handler: s, ConnState: s.count, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)},
	}
	s.server.StartTLS()
}

// Stop ends it, if it runs.
func (s *Server) Stop() {
	if s.server != nil {
		Close(s.server)
		s.server = nil
	}
}

// Freeze stops it where it is, until thaw is called: the kernel goes on taking
// connections, and nobody answers.
func (s *Server) Freeze() (thaw func()) {
	s.frozen.Lock()
	return s.frozen.Unlock
}

// Open counts its connections.
func (s *Server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// ServeHTTP answers as its cluster does, or badly.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case s.Away.Load():
		w.WriteHeader(http.StatusUnauthorized)
	case s.Unready.Load() && r.URL.Path == "/readyz":
		w.WriteHeader(http.StatusInternalServerError)
		io.WriteString(w, "shutdown failed")
	default:
		s.cluster.Load().ServeHTTP(w, r)
	}
}

func (s *Server) count(c net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state == http.StateClosed {
		delete(s.conns, c)
	} else {
		s.conns[c] = true
	}
}

// mute is a listener whose connections send nothing while the server is frozen.
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

// Close closes a server that has clients which come back at once. Its own Close alone
// would wait for ever for a watch of one that came between closing the connections and
// closing the listener.
func Close(s *httptest.Server) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		s.Close()
	}()
	for {
		s.CloseClientConnections()
		select {
		case <-closed:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}
