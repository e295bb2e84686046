package daemon

import (
	"context"
	"net/netip"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/kubeapi"
)

// APIServer is a real kube-apiserver, with the Node authorizer and RBAC on. Its
// certificates are as OpenShift's: the one that it serves without SNI is for the
// service network, and others are for localhost and for the internal name of the
// API.
type APIServer struct {
	// CA signs everybody's certificates.
	CA *Authority
	// Addr is where it listens.
	Addr netip.AddrPort
	// InternalName is the internal name of the API, "api-int.<domain>".
	InternalName string

	control *controlPlane
	server  kubeapi.Server
}

// NewAPIServer starts etcd and an API server at 127.0.0.1 with nothing in them,
// and returns when it is ready. domain is the cluster's.
func NewAPIServer(t testing.TB, domain string) *APIServer {
	t.Helper()
	at := FreePort(t)
	s := newControlPlane(t, kubeapi.RealConfig{Domain: domain, Addr: at.Addr(), Port: at.Port()}).apiServer(nil, at.Addr())
	s.Start()
	return s
}

// FreePort is a port of 127.0.0.1 that is nobody else's while nobody listens there.
func FreePort(t testing.TB) netip.AddrPort {
	t.Helper()
	loopback := netip.MustParseAddr("127.0.0.1")
	port, err := kubeapi.FreePort(loopback)
	if err != nil {
		t.Fatal(err)
	}
	return netip.AddrPortFrom(loopback, port)
}

// Replica starts another API server on the same etcd, at another address of
// loopback and the same port.
func (s *APIServer) Replica(addr string) *APIServer {
	s.control.t.Helper()
	r := s.control.apiServer(nil, netip.MustParseAddr(addr))
	r.Start()
	return r
}

// Start starts the server, also after Stop or Kill, and returns when it is ready.
// It has then what it had before.
func (s *APIServer) Start() {
	s.control.t.Helper()
	s.Launch()
	s.AwaitReady()
}

// Launch starts the server and returns at once.
func (s *APIServer) Launch() {
	s.control.t.Helper()
	s.must(s.server.Launch())
}

// AwaitReady returns when a server that was launched is ready.
func (s *APIServer) AwaitReady() {
	s.control.t.Helper()
	s.patiently(s.server.AwaitReady)
}

// Stop ends the server properly. While anybody watches, that takes a minute, in
// which it goes on serving, but for /readyz. What etcd has stays.
func (s *APIServer) Stop() {
	s.control.t.Helper()
	s.patiently(s.server.Stop)
}

// Kill ends the server at once. What etcd has stays.
func (s *APIServer) Kill() {
	s.control.t.Helper()
	s.must(s.server.Kill())
}

// Freeze stops the server's process where it is: the kernel goes on taking its
// connections, and nobody answers. Thaw lets it go on.
func (s *APIServer) Freeze() {
	s.control.t.Helper()
	s.must(s.server.Freeze())
}

// Thaw undoes Freeze.
func (s *APIServer) Thaw() {
	s.control.t.Helper()
	s.must(s.server.Thaw())
}

// Create makes an object, given as YAML or JSON, at the path of its collection,
// such as /api/v1/nodes. Like Patch and Delete, it asks any server that runs.
func (s *APIServer) Create(collection string, object []byte) {
	s.control.t.Helper()
	s.patiently(func(ctx context.Context) error { return s.control.plane.Create(ctx, collection, object) })
}

// Patch changes an object by a JSON merge patch (RFC 7396), given as YAML or
// JSON.
func (s *APIServer) Patch(path string, patch []byte) {
	s.control.t.Helper()
	s.patiently(func(ctx context.Context) error { return s.control.plane.Patch(ctx, path, patch) })
}

// Delete removes an object at once.
func (s *APIServer) Delete(path string) {
	s.control.t.Helper()
	s.patiently(func(ctx context.Context) error { return s.control.plane.Delete(ctx, path) })
}

func (s *APIServer) patiently(do func(context.Context) error) {
	s.control.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	s.must(do(ctx))
}

func (s *APIServer) must(err error) {
	s.control.t.Helper()
	if err != nil {
		s.control.t.Fatal(err)
	}
}
