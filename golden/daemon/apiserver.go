package daemon

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/lab/netns"
)

// APIServer is a real kube-apiserver on loopback, with the Node authorizer and
// RBAC on. Its certificates are as OpenShift's: the one that it serves without
// SNI is for the service network, and others are for localhost and for the
// internal name of the API.
type APIServer struct {
	// CA signs everybody's certificates.
	CA *Authority
	// Addr is where it listens.
	Addr netip.AddrPort
	// InternalName is the internal name of the API, "api-int.<domain>".
	InternalName string

	t      testing.TB
	dir    string
	etcd   string      // URL
	node   *netns.Node // nil for this machine
	names  []string    // of the certificate that it serves without SNI
	server *process
	admin  *http.Client
}

// NewAPIServer starts etcd and an API server at 127.0.0.1 with nothing in them,
// and returns when it is ready. domain is the cluster's.
func NewAPIServer(t testing.TB, domain string) *APIServer {
	t.Helper()
	s := &APIServer{
		CA:           NewAuthority(t, "test-signer"),
		Addr:         netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), freePort(t)),
		InternalName: "api-int." + domain,
		t:            t,
		etcd:         startEtcd(t, nil, "127.0.0.1"),
		names:        serviceNames(),
	}
	s.prepare()
	s.Start()
	return s
}

// Replica starts another API server on the same etcd, at another address of
// loopback and the same port.
func (s *APIServer) Replica(addr string) *APIServer {
	s.t.Helper()
	r := &APIServer{
		CA:           s.CA,
		Addr:         netip.AddrPortFrom(netip.MustParseAddr(addr), s.Addr.Port()),
		InternalName: s.InternalName,
		t:            s.t,
		etcd:         s.etcd,
		names:        serviceNames(),
	}
	r.prepare()
	r.Start()
	return r
}

// serviceNames are those by which pods reach the API.
func serviceNames() []string { return []string{"kubernetes.default.svc", "10.0.0.1"} }

// startEtcd starts an etcd on a node, or on this machine, with nothing in it.
func startEtcd(t testing.TB, node *netns.Node, addr string) (url string) {
	t.Helper()
	at := func() string { return "http://" + net.JoinHostPort(addr, strconv.Itoa(int(freePort(t)))) }
	client, peer := at(), at()
	start(t, "etcd", command(node, tool(t, "etcd"),
		"--data-dir", t.TempDir(), "--unsafe-no-fsync", "--log-level", "warn",
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer))
	return client
}

// command is for a node, or for this machine. API servers and what they need
// leave the processor to what has to be on time.
func command(node *netns.Node, name string, args ...string) *exec.Cmd {
	args = append([]string{"-n", "5", name}, args...)
	if node == nil {
		return exec.Command("nice", args...)
	}
	return node.Command(context.Background(), "nice", args...)
}

// freePort returns a port of 127.0.0.1 that nothing listens on.
func freePort(t testing.TB) uint16 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).AddrPort().Port()
}

// prepare writes the files that the server reads.
func (s *APIServer) prepare() {
	s.t.Helper()
	s.dir = s.t.TempDir()
	s.write("ca.crt", s.CA.CertPEM)
	for name, names := range map[string][]string{
		"service":   s.names,
		"localhost": {"localhost", "127.0.0.1"},
		"internal":  {s.InternalName},
		"accounts":  {"service-accounts"},
	} {
		pair := s.CA.Serving(names...)
		s.write(name+".crt", pair.Cert)
		s.write(name+".key", pair.Key)
	}
	admin := s.CA.Client("admin", "system:masters")
	cert, err := tls.X509KeyPair(admin.Cert, admin.Key)
	if err != nil {
		s.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.CA.CertPEM)
	transport := &http.Transport{DialContext: s.dial, TLSClientConfig: &tls.Config{
		RootCAs: roots, Certificates: []tls.Certificate{cert}, ServerName: s.InternalName,
	}}
	s.admin = &http.Client{Transport: transport, Timeout: patience}
	s.t.Cleanup(transport.CloseIdleConnections)
}

// dial connects from where the server is.
func (s *APIServer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if s.node == nil {
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	return s.node.DialContext(ctx, network, addr)
}

func (s *APIServer) write(name string, data []byte) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), data, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// Start starts the server, also after Stop or Kill, and returns when it is ready. It
// has then what it had before.
func (s *APIServer) Start() {
	s.t.Helper()
	s.Launch()
	s.AwaitReady()
}

// Launch starts the server and returns at once.
func (s *APIServer) Launch() {
	s.t.Helper()
	bind := s.Addr.Addr().String()
	if s.node != nil {
		bind = "::" // a node's API server is at every address
	}
	in := func(name string) string { return filepath.Join(s.dir, name) }
	s.server = start(s.t, "kube-apiserver at "+s.Addr.String(), command(s.node, tool(s.t, "kube-apiserver"),
		"--bind-address", bind, "--secure-port", strconv.Itoa(int(s.Addr.Port())),
		"--etcd-servers", s.etcd,
		"--authorization-mode", "Node,RBAC",
		"--client-ca-file", in("ca.crt"),
		"--tls-cert-file", in("service.crt"), "--tls-private-key-file", in("service.key"),
		"--tls-sni-cert-key", in("localhost.crt")+","+in("localhost.key")+":localhost",
		"--tls-sni-cert-key", in("internal.crt")+","+in("internal.key")+":"+s.InternalName,
		"--service-account-issuer", "https://kubernetes.default.svc",
		"--service-account-key-file", in("accounts.crt"), "--service-account-signing-key-file", in("accounts.key"),
		"--service-cluster-ip-range", "10.0.0.0/24",
		"--enable-admission-plugins", "NodeRestriction",
		"--disable-admission-plugins", "ServiceAccount",
		// Loopback is no address that it may announce.
		"--endpoint-reconciler-type", "none", "--advertise-address", "192.0.2.1",
	))
}

// AwaitReady returns when a server that was launched is ready.
func (s *APIServer) AwaitReady() {
	s.t.Helper()
	await(s.t, "the API server to be ready", func() bool {
		if s.server.ended() {
			s.t.Fatalf("the API server does not start:\n%s", s.server.output())
		}
		status, _, err := s.request(http.MethodGet, "/readyz", nil)
		return err == nil && status == http.StatusOK
	})
}

// Stop ends the server properly. While anybody watches, that takes a minute, in
// which it goes on serving, but for /readyz. What etcd has stays.
func (s *APIServer) Stop() {
	s.t.Helper()
	s.server.stop(s.t)
	s.admin.CloseIdleConnections()
}

// Kill ends the server at once. What etcd has stays.
func (s *APIServer) Kill() {
	s.t.Helper()
	s.server.signal(syscall.SIGKILL)
	<-s.server.done
	s.admin.CloseIdleConnections()
}

// Freeze stops the server's process where it is: the kernel goes on taking its
// connections, and nobody answers. Thaw lets it go on.
func (s *APIServer) Freeze() { s.server.signal(syscall.SIGSTOP) }

// Thaw undoes Freeze.
func (s *APIServer) Thaw() { s.server.signal(syscall.SIGCONT) }

// Create makes an object, given as YAML or JSON, at the path of its collection,
// such as /api/v1/nodes.
func (s *APIServer) Create(collection string, object []byte) {
	s.t.Helper()
	s.must(http.MethodPost, collection, object)
}

// Patch changes an object by a JSON merge patch (RFC 7396), given as YAML or
// JSON.
func (s *APIServer) Patch(path string, patch []byte) {
	s.t.Helper()
	s.must(http.MethodPatch, path, patch)
}

// Delete removes an object at once.
func (s *APIServer) Delete(path string) {
	s.t.Helper()
	s.must(http.MethodDelete, path+"?gracePeriodSeconds=0", nil)
}

func (s *APIServer) must(method, path string, body []byte) {
	s.t.Helper()
	status, answer, err := s.request(method, path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	if status >= 300 {
		s.t.Fatalf("%s %s: %d\n%s", method, path, status, answer)
	}
}

// request is made as cluster administrator.
func (s *APIServer) request(method, path string, body []byte) (status int, answer []byte, err error) {
	if body, err = yaml.YAMLToJSON(body); err != nil {
		return 0, nil, err
	}
	req, err := http.NewRequest(method, "https://"+s.Addr.String()+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	if method == http.MethodGet || method == http.MethodDelete {
		req.Body, req.ContentLength = nil, 0
	}
	resp, err := s.admin.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}
