package daemon

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
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
	"time"

	"sigs.k8s.io/yaml"
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
	etcd   string // URL
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
		etcd:         startEtcd(t),
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
	}
	r.prepare()
	r.Start()
	return r
}

func startEtcd(t testing.TB) (url string) {
	t.Helper()
	client := "http://127.0.0.1:" + strconv.Itoa(int(freePort(t)))
	peer := "http://127.0.0.1:" + strconv.Itoa(int(freePort(t)))
	start(t, "etcd", exec.Command(tool(t, "etcd"),
		"--data-dir", t.TempDir(), "--unsafe-no-fsync", "--log-level", "warn",
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer))
	return client
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
		"service":   {"kubernetes.default.svc", "10.0.0.1"},
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
	transport := &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs: roots, Certificates: []tls.Certificate{cert}, ServerName: s.InternalName,
	}}
	s.admin = &http.Client{Transport: transport, Timeout: patience}
	s.t.Cleanup(transport.CloseIdleConnections)
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
	in := func(name string) string { return filepath.Join(s.dir, name) }
	s.server = start(s.t, "kube-apiserver at "+s.Addr.String(), exec.Command(tool(s.t, "kube-apiserver"),
		"--bind-address", s.Addr.Addr().String(), "--secure-port", strconv.Itoa(int(s.Addr.Port())),
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

// NodeKubeconfig writes a kubeconfig of a node into a directory, as kubelet has
// it, and returns its path. A link beside it points to the file with the client
// certificate, and is moved to another when that rotates: call it again for
// that. server is the host and port that the kubeconfig names.
func NodeKubeconfig(t testing.TB, dir string, ca *Authority, node, server string) string {
	t.Helper()
	current := filepath.Join(dir, "kubelet-client-current.pem")
	dated := filepath.Join(dir, fmt.Sprintf("kubelet-client-%d.pem", time.Now().UnixNano()))
	config := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: local
  cluster:
    server: https://%s
    certificate-authority: ca.crt
users:
- name: kubelet
  user:
    client-certificate: %s
    client-key: %[2]s
contexts:
- name: kubelet
  context: {cluster: local, user: kubelet}
current-context: kubelet
`, server, current)
	path := filepath.Join(dir, "kubeconfig")
	pair := ca.Client("system:node:"+node, "system:nodes")
	link := current + ".new"
	for _, step := range []func() error{
		func() error { return os.WriteFile(filepath.Join(dir, "ca.crt"), ca.CertPEM, 0o600) },
		func() error { return os.WriteFile(dated, pair.Both(), 0o600) },
		func() error { return os.Symlink(dated, link) },
		func() error { return os.Rename(link, current) },
		func() error { return os.WriteFile(path, []byte(config), 0o600) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	return path
}
