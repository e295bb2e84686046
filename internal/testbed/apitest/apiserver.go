package apitest

import (
	"context"
	"net/netip"
	"testing"

	"github.com/vipgen/vipgen/internal/testbed/authority"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/kubeapi"
	"github.com/vipgen/vipgen/internal/testkit"
)

// APIServer is kubeapi's stand-in for a kube-apiserver with the Node authorizer and RBAC. Its
// certificates are like OpenShift's: the one served without SNI is for the service network, and
// others are for localhost and for the internal name of the API.
type APIServer struct {
	// CA signs all certificates.
	CA *authority.Authority
	// Addr is its address.
	Addr netip.AddrPort
	// InternalName is the internal name of the API, "api-int.<domain>".
	InternalName string

	t      testing.TB
	plane  kubeapi.Plane
	server kubeapi.Server
}

// NewStandIn starts an API server without objects at an address of loopback, and returns when it
// is ready. domain is the cluster's.
func NewStandIn(t testing.TB, domain, addr string) *APIServer {
	t.Helper()
	port := daemon.FreePort(t).Port()
	plane, err := kubeapi.NewStandIn(kubeapi.StandInConfig{Domain: domain, Port: port})
	return newAPIServer(t, domain, netip.AddrPortFrom(netip.MustParseAddr(addr), port), plane, err)
}

func newAPIServer(t testing.TB, domain string, at netip.AddrPort, plane kubeapi.Plane, err error) *APIServer {
	t.Helper()
	testkit.Must(t, err)
	testkit.Cleanup(t, plane.Close)
	s := &APIServer{CA: plane.CA(), Addr: at, InternalName: "api-int." + domain, t: t, plane: plane}
	return s.Replica(at.Addr().String())
}

// Replica starts another API server for the same objects, at another address of loopback and
// the same port.
func (s *APIServer) Replica(addr string) *APIServer {
	s.t.Helper()
	r := *s
	r.Addr = netip.AddrPortFrom(netip.MustParseAddr(addr), s.Addr.Port())
	server, err := s.plane.Server(nil, r.Addr.Addr())
	s.must(err)
	r.server = server
	r.Start()
	return &r
}

// Start starts the server, also after Stop or Kill, and returns when it is ready. It keeps its
// objects.
func (s *APIServer) Start() {
	s.t.Helper()
	s.Launch()
	s.patiently(s.server.AwaitReady)
}

// Launch starts the server and returns at once.
func (s *APIServer) Launch() {
	s.t.Helper()
	s.must(s.server.Launch())
}

// Stop shuts the server down gracefully. While there are watches this takes a minute, in which
// it serves everything except /readyz. The objects are kept.
func (s *APIServer) Stop() {
	s.t.Helper()
	s.patiently(s.server.Stop)
}

// Kill kills the server. The objects are kept.
func (s *APIServer) Kill() {
	s.t.Helper()
	s.must(s.server.Kill())
}

// Freeze suspends the server's process: the kernel continues to accept connections, which
// nothing answers. Thaw resumes it.
func (s *APIServer) Freeze() {
	s.t.Helper()
	s.must(s.server.Freeze())
}

// Thaw undoes Freeze.
func (s *APIServer) Thaw() {
	s.t.Helper()
	s.must(s.server.Thaw())
}

// Create creates an object, given as YAML or JSON, at the path of its collection, such as
// /api/v1/nodes. Like Patch and Delete, it uses any running server.
func (s *APIServer) Create(collection string, object []byte) {
	s.t.Helper()
	s.patiently(func(ctx context.Context) error { return s.plane.Create(ctx, collection, object) })
}

// Patch changes an object by a JSON merge patch (RFC 7396), given as YAML or
// JSON.
func (s *APIServer) Patch(path string, patch []byte) {
	s.t.Helper()
	s.patiently(func(ctx context.Context) error { return s.plane.Patch(ctx, path, patch) })
}

// Delete removes an object immediately.
func (s *APIServer) Delete(path string) {
	s.t.Helper()
	s.patiently(func(ctx context.Context) error { return s.plane.Delete(ctx, path) })
}

func (s *APIServer) patiently(do func(context.Context) error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	s.must(do(ctx))
}

func (s *APIServer) must(err error) {
	s.t.Helper()
	testkit.Must(s.t, err)
}
