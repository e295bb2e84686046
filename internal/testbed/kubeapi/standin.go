package kubeapi

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vipgen/vipgen/internal/testbed/authority"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testbed/process"
)

// shutdownDelay is how long the stand-in continues to serve after Stop: several times what load
// balancers take to notice that /readyz fails. OpenShift's API servers continue for a minute
// and more.
const shutdownDelay = 5 * time.Second

// standIn is a Plane of API servers in this process.
type standIn struct {
	*administrator
	domain string
	port   uint16
	store  *store
	delay  func() <-chan time.Time // until a stopped server ends
	full   atomic.Bool             // it refuses writes
}

// RefuseWrites implements Plane.
func (p *standIn) RefuseWrites(_ context.Context, refuse bool) error {
	p.full.Store(refuse)
	return nil
}

// StandInConfig configures NewStandIn. Domain is required.
type StandInConfig struct {
	// Domain is the cluster's, such as demo.example.com.
	Domain string
	// Port is the port of API servers, 6443 if zero.
	Port uint16
	// ShutdownDelay is the time that a server continues to serve after Stop, 5 s if zero.
	ShutdownDelay time.Duration
}

// NewStandIn makes a Plane without etcd and kube-apiserver.
//
// Its servers have nodes, pods, ConfigMaps, namespaces, leases and the objects of RBAC. They
// list, watch and select these like the real one, identify users by the client certificate, and
// answer in JSON, whatever format is requested. They have no defaults, validation, admission,
// garbage collection or discovery; RBAC is stored and not evaluated: administrators may do
// everything, nodes may read what the RBAC that vipgen renders permits, and other users may do
// nothing.
func NewStandIn(c StandInConfig) (Plane, error) {
	a, err := newAdministrator(c.Domain)
	if err != nil {
		return nil, err
	}
	delay := func() <-chan time.Time { return time.After(cmp.Or(c.ShutdownDelay, shutdownDelay)) }
	return &standIn{administrator: a, domain: c.Domain, port: cmp.Or(c.Port, port), store: newStore(history), delay: delay}, nil
}

// Server implements Plane.
func (p *standIn) Server(node *netns.Node, addr netip.Addr, valid ...netip.Addr) (Server, error) {
	pairs, err := newPairs(p.ca, p.domain, node, addr, valid)
	if err != nil {
		return nil, err
	}
	s := &standInServer{plane: p, name: serverName(node, addr), node: node, addr: netip.AddrPortFrom(addr, p.port)}
	if s.tls, err = pairs.config(p.domain); err != nil {
		return nil, err
	}
	s.target = p.target(node, s.addr, s.usable)
	p.add(s, s.target)
	return s, nil
}

// config serves the certificate that a client requests by SNI. Client certificates are checked
// with each request.
func (p pairs) config(domain string) (*tls.Config, error) {
	byName := map[string]*tls.Certificate{}
	for name, pair := range map[string]authority.KeyPair{"": p.service, "localhost": p.localhost, internalName(domain): p.internal} {
		cert, err := pair.TLS()
		if err != nil {
			return nil, err
		}
		byName[name] = &cert
	}
	return &tls.Config{
		ClientAuth: tls.RequestClientCert,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if cert := byName[hello.ServerName]; cert != nil {
				return cert, nil
			}
			return byName[""], nil
		},
	}, nil
}

// standInServer is an API server of a standIn.
type standInServer struct {
	plane  *standIn
	name   string
	node   *netns.Node
	addr   netip.AddrPort
	tls    *tls.Config
	target *target

	mu  sync.Mutex
	now *life // nil before the first launch
}

// life is the time of a server from one launch to its end.
type life struct {
	plane    *standIn
	listener *process.Listener
	http     *http.Server
	stop     chan struct{} // closed by Stop
	ending   chan struct{} // closed when watches must end
	ended    chan struct{} // closed when it has ended
}

// Launch implements Server.
func (s *standInServer) Launch() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now != nil && !closed(s.now.ended) {
		return fmt.Errorf("the API server of %s runs already", s.name)
	}
	l, err := s.listen()
	if err != nil {
		return fmt.Errorf("starting the API server of %s: %w", s.name, err)
	}
	now := &life{plane: s.plane, listener: l, stop: make(chan struct{}), ending: make(chan struct{}), ended: make(chan struct{})}
	now.http = &http.Server{
		Handler: now, TLSConfig: s.tls.Clone(),
		// Clients that disconnect during a handshake are not logged.
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	s.now = now
	go now.http.ServeTLS(l, "", "") // until kill or Stop
	return nil
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// listen opens the port at all addresses of a node, or at one of this machine.
func (s *standInServer) listen() (*process.Listener, error) {
	if s.node == nil {
		return process.ListenAt(nil, s.addr)
	}
	return process.ListenAll(s.node, int(s.addr.Port()))
}

// current returns the running life, nil if there is none.
func (s *standInServer) current() *life {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil || closed(s.now.ended) {
		return nil
	}
	return s.now
}

func (s *standInServer) ended() error { return fmt.Errorf("the API server of %s does not run", s.name) }

// Running implements Server.
func (s *standInServer) Running() bool { return s.current() != nil }

func (s *standInServer) usable() bool {
	now := s.current()
	return now != nil && !now.listener.Frozen()
}

// AwaitReady implements Server.
func (s *standInServer) AwaitReady(ctx context.Context) error {
	return s.target.awaitReady(ctx, func() error {
		if !s.Running() {
			return s.ended()
		}
		return nil
	})
}

// Kill implements Server.
func (s *standInServer) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now != nil {
		s.now.kill()
	}
	s.target.close()
	return nil
}

// kill ends everything at once.
func (l *life) kill() {
	if closed(l.ended) {
		return
	}
	l.listener.Kill()
	l.http.Close()
	close(l.ended)
}

func (l *life) stopping() bool { return closed(l.stop) }

// Stop implements Server.
func (s *standInServer) Stop(ctx context.Context) error {
	now := s.current()
	if now == nil {
		return nil
	}
	s.mu.Lock()
	if !now.stopping() {
		close(now.stop)
	}
	s.mu.Unlock()
	defer s.Kill() // the rest
	select {
	case <-s.plane.delay():
	case <-now.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stopping the API server of %s: %w", s.name, ctx.Err())
	}
	s.mu.Lock()
	if !closed(now.ending) {
		close(now.ending)
	}
	s.mu.Unlock()
	bound, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	if err := now.http.Shutdown(bound); err != nil && (ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded)) {
		return fmt.Errorf("stopping the API server of %s: %w", s.name, err)
	}
	return nil
}

// endTime is how long open requests may take once no new ones are accepted: a client that is gone or
// frozen reads no answer. API servers have such a bound, too, of a minute.
const endTime = 10 * time.Second

// Freeze implements Server.
func (s *standInServer) Freeze() error {
	now := s.current()
	if now == nil {
		return s.ended()
	}
	now.listener.Freeze()
	s.target.close()
	return nil
}

// Thaw implements Server.
func (s *standInServer) Thaw() error {
	now := s.current()
	if now == nil {
		return s.ended()
	}
	now.listener.Thaw()
	return nil
}

// SetAddr implements Server.
func (s *standInServer) SetAddr(addr netip.Addr) { s.target.setAddr(addr) }
